"""`glassgrad live`: the accepted requests, the sent data, and a stop without loss; also `glassgrad runs`."""

from __future__ import annotations

import http.client
import json
import socket
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import glassgrad as gg
from glassgrad.cli import run as command
from glassgrad.errors import InputError
from glassgrad.train import Callback, Trainer, TrainingConfig
from glassgrad.train.kept.sessions import read_sessions
from glassgrad.train.show.page_server import PageServer
from glassgrad.train.show.run_list import list_runs
from tests.report.made_runs import made_run


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageServer]:
    run = made_run(tmp_path_factory.mktemp("live") / "run", watched=False)
    with PageServer(run) as found:
        thread = threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield found
        found.shutdown()
        thread.join()


def asked(server: PageServer, path: str, method: str = "GET", **headers: str) -> tuple[int, str, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    connection.request(method, path, headers={name.capitalize(): value for name, value in headers.items()})
    answer = connection.getresponse()
    found = answer.status, answer.read().decode(), answer.headers
    connection.close()
    return found


def test_the_page_is_served_to_whoever_has_the_whole_address(server: PageServer) -> None:
    assert server.server_address[0] == "127.0.0.1"
    status, text, headers = asked(server, f"/{server.token}/")
    assert status == 200
    assert "connect-src 'self'" in text
    assert '"live":{' in text
    assert (headers["Cache-Control"], headers["X-Frame-Options"]) == ("no-store", "DENY")
    for path in ("/", "/data", f"/{server.token[:-1]}/", f"/{'x' * 22}/data", "/%00/", "//"):
        assert asked(server, path)[0] == 404, path
    assert asked(server, f"/{server.token}/../run.json")[0] == 404


def test_other_host_names_are_refused_and_a_stop_from_elsewhere(server: PageServer) -> None:
    for host in ("evil.example", f"evil.example:{server.server_port}", "127.0.0.1", f"0.0.0.0:{server.server_port}"):
        assert asked(server, f"/{server.token}/", host=host)[0] == 403, host
    assert asked(server, f"/{server.token}/", host=f"localhost:{server.server_port}")[0] == 200
    stop = server.run / "stop"
    for origin in ({}, {"origin": "http://evil.example"}, {"origin": "null"}):
        assert asked(server, f"/{server.token}/stop", "POST", **origin)[0] == 403
    assert asked(server, "/wrong/stop", "POST", origin=f"http://127.0.0.1:{server.server_port}")[0] == 404
    assert not stop.exists()
    assert asked(server, f"/{server.token}/stop", "POST", origin=f"http://127.0.0.1:{server.server_port}")[0] == 200
    assert stop.exists()


def test_a_browser_that_goes_away_and_a_foreign_address_leave_the_terminal_alone(
    server: PageServer, capsys: pytest.CaptureFixture[str]
) -> None:
    linger = struct.pack("ii", 1, 0)  # closing sends a reset
    rest = f" HTTP/1.1\r\nHost: localhost:{server.server_port}\r\n\r\n"
    for request in ("GET", f"GET /{server.token}/{rest}" * 9, f"GET http://[/{rest}"):
        with socket.create_connection(("127.0.0.1", server.server_port)) as one:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            one.sendall(request.encode())
            time.sleep(0.02)
    assert asked(server, f"/{server.token}/data")[0] == 200
    assert capsys.readouterr().err == ""


def test_a_port_serves_one_run(server: PageServer) -> None:
    with pytest.raises(InputError, match=str(server.server_port)):
        PageServer(server.run, server.server_port)


def test_a_body_is_not_read_as_the_next_request(server: PageServer) -> None:
    host = f"localhost:{server.server_port}"
    inner = f"GET /{server.token}/data HTTP/1.1\r\nHost: {host}\r\n\r\n"
    head = f"POST /{server.token}/stop HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\n"
    head += f"Content-Length: {len(inner)}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=10) as one:
        one.sendall((head + inner).encode())
        found = b"".join(iter(lambda: one.recv(1 << 16), b""))
    assert found.count(b"HTTP/1.1 ") == 1
    (server.run / "stop").unlink()


def test_only_what_is_new_is_sent(server: PageServer) -> None:
    everything = json.loads(asked(server, f"/{server.token}/data?after=0")[1])
    known = everything["records"]
    with (server.run / "metrics.jsonl").open("a") as file:
        file.write('{"event": "train", "step": 410, "loss": 0.25, "seconds": 8.5}\n')
    news = json.loads(asked(server, f"/{server.token}/data?after={known}")[1])
    assert news["records"] == known + 1
    assert {(curve["event"], curve["name"]): curve["points"] for curve in news["curves"]} == {
        ("train", "loss"): 1,
        ("train", "steps_per_second"): 1,
    }
    assert "layers" not in news
    assert asked(server, f"/{server.token}/data?after=-1e9")[0] == 200


def test_what_is_no_run_is_not_served(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no run at"):
        PageServer(tmp_path)


class _Touch(Callback):
    every = 3

    def __init__(self, file: Path) -> None:
        self.file = file

    def on_step_end(self, run: Any) -> None:
        self.file.touch()
        time.sleep(0.02)  # the file is looked for ten times a second


def test_a_file_stops_a_run_which_then_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def trainer(*callbacks: Callback) -> Trainer:
        gg.manual_seed(0)
        x = gg.randn(64, 2)
        loader = gg.utils.data.DataLoader(gg.utils.data.TensorDataset(x, (x[:, 0] > 0).long()), batch_size=1)
        model = gg.nn.Linear(2, 2)
        config = TrainingConfig(
            epochs=1, engine="eager", log_every=1, progress="none", run_dir=str(tmp_path / "run"), tag="one, two"
        )
        optimizer = gg.optim.SGD(model.parameters(), lr=0.1)
        return Trainer(model, optimizer, gg.nn.functional.cross_entropy, loader, config=config, callbacks=callbacks)

    result = trainer(_Touch(tmp_path / "run" / "stop")).fit()
    assert 3 <= result.step < 64
    assert not result.finished
    assert "stopped after step" in capsys.readouterr().err
    assert not (tmp_path / "run" / "stop").exists()
    (tmp_path / "run" / "stop").touch()  # of a press after the end; the next process does not obey it
    assert trainer().fit(resume=True).step == 64
    told = read_sessions(tmp_path / "run")
    assert [one["ended"] for one in told["sessions"]] == ["stopped", "finished"]
    assert told["tags"] == ["one", "two"]


def test_runs_are_listed_sorted_and_found_by_tag(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, rate in (("a", 0.02), ("b", 0.5), ("deep/c[bold]", 0.1)):
        made_run(tmp_path / name, rate, watched=False)
    told = json.loads((tmp_path / "b" / "run.json").read_text())
    (tmp_path / "b" / "run.json").write_text(json.dumps({**told, "tags": ["baseline"]}))
    (tmp_path / "nothing").mkdir()
    found = list_runs(tmp_path, sort="loss")
    assert [one.path.name for one in found] == ["b", "c[bold]", "a"]
    assert [one.loss for one in found] == sorted(one.loss for one in found)
    assert (found[0].state, found[0].step, found[0].steps, found[0].found) == ("finished", 400, 400, "1 info")
    assert command(["runs", str(tmp_path), "--sort", "name"]) == 0
    text = capsys.readouterr().out
    assert text.index("/a ") < text.index("/b ") < text.index("c[bold]")
    assert command(["runs", str(tmp_path), "--tag", "baseline"]) == 0
    [line] = [line for line in capsys.readouterr().out.splitlines() if "finished" in line]
    assert line.rstrip().endswith("baseline")
    assert command(["runs", str(tmp_path), "--sort", "loss", "--json"]) == 0
    plain = json.loads(capsys.readouterr().out)
    assert [Path(one["run"]).name for one in plain] == ["b", "c[bold]", "a"]
    assert (plain[0]["state"], plain[0]["findings"], plain[0]["tags"]) == ("finished", {"info": 1}, ["baseline"])
    assert command(["runs", str(tmp_path / "nothing"), "--json"]) == 0
    assert capsys.readouterr().out == "[]\n"
    assert command(["runs", str(tmp_path / "nothing")]) == 0
    assert "no runs in" in capsys.readouterr().out
    assert command(["runs", str(tmp_path / "none")]) == 2
