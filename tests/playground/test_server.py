"""The server answers its page, and nobody else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from glassgrad import errors
from glassgrad.base.local_server import MOST_SENT
from glassgrad.lessons.playground import saving
from glassgrad.lessons.playground.runner import Runner
from glassgrad.lessons.playground.server import Server
from tests.playground.conftest import Client

REFUSED: dict[str, tuple[dict[str, Any], int]] = {
    "no token": ({"X_Token": None}, 404),
    "wrong token": ({"X_Token": "x" * 22}, 404),
    "no host": ({"Host": None}, 403),
    "foreign host": ({"Host": "example.org"}, 403),
    "other port": ({"Host": "127.0.0.1:1"}, 403),
    "no origin": ({"Origin": None}, 403),
    "foreign origin": ({"Origin": "http://example.org"}, 403),
    "null origin": ({"Origin": "null"}, 403),
    "no length": ({"Content_Length": None}, 411),
    "length in words": ({"Content_Length": "many"}, 411),
    "too long": ({"Content_Length": str(MOST_SENT + 1)}, 413),
    "far too long": ({"Content_Length": "9" * 5000}, 413),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("path", ["/api/run", "/api/save", "/api/stop"])
def test_a_post_that_is_not_the_page_s_is_refused(client: Client, name: str, path: str) -> None:
    headers, status = REFUSED[name]
    answer = client.send("POST", path, {"text": "raise SystemExit"}, **headers)
    assert answer.status == status
    assert not saving.kept().exists() or "SystemExit" not in saving.kept().read_text()


@pytest.mark.parametrize("name", [name for name in REFUSED if "token" in name or "host" in name or "port" in name])
@pytest.mark.parametrize("path", ["/", "/api/state", "/api/example?name=xor", "/playground.js"])
def test_a_get_that_is_not_the_page_s_is_refused(client: Client, name: str, path: str) -> None:
    headers, status = REFUSED[name]
    assert client.send("GET", path, **headers).status == status


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"])
def test_other_methods_are_refused(client: Client, method: str) -> None:
    assert client.send(method, "/api/state").status == 501


@pytest.mark.parametrize("path", ["/api/nothing", "/nothing.js", "/../server.py", "/%2e%2e/server.py", "/api/run"])
def test_other_places_are_not_found(client: Client, path: str) -> None:
    assert client.send("GET", path).status == 404


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"\xff", b'"text"', b"[" * 100_000])
def test_a_body_that_is_no_object_is_refused(client: Client, body: bytes) -> None:
    assert client.send("POST", "/api/save", body).status == 400


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/run", {}),
        ("/api/run", {"text": 3}),
        ("/api/run", {"text": "", "panes": "values"}),
        ("/api/save", {"text": None}),
        ("/api/complete", {"text": "", "line": "1", "column": 0}),
        ("/api/judge", {"text": "", "exercise": "xor"}),
        ("/api/export", {"text": "", "format": "exe"}),
    ],
)
def test_a_request_that_does_not_fit_is_told(client: Client, path: str, body: Any) -> None:
    answer = client.send("POST", path, body)
    assert answer.status == 400
    assert json.loads(answer.body)["message"]


def test_the_address_gives_a_cookie_once(client: Client) -> None:
    answer = client.send("GET", f"/?token={client.server.token}", X_Token=None)
    assert (answer.status, answer.headers["Location"]) == (303, "/")
    cookie = answer.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    held = cookie.partition(";")[0]
    assert client.send("GET", "/api/state", X_Token=None, Cookie=held).status == 200
    assert client.send("GET", "/api/state", X_Token=None, Cookie=held[:-1]).status == 404


def test_every_answer_forbids_other_sources(client: Client) -> None:
    for answer in (client.send("GET", "/api/state"), client.send("GET", "/nothing"), client.send("GET", "/", Host="x")):
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        assert answer.headers["X-Frame-Options"] == "DENY"
        assert answer.headers["Cache-Control"] == "no-store"


def test_the_state_names_what_can_be_opened(client: Client) -> None:
    state = client.json("GET", "/api/state")
    names = [one["name"] for one in state["examples"]]
    own = [name for name in names if not name.startswith(("lesson", "exercise"))]
    assert len(own) == 20
    assert {"lesson-01", "exercise-01"} <= set(names)
    assert state["file"] is None
    for name in names:
        found = client.json("GET", f"/api/example?name={name}")
        assert found["text"].startswith('"""')
        assert bool(found["questions"]) <= name.startswith("lesson")
        assert "noqa" not in found["text"]
    assert client.json("GET", "/api/example?name=lesson-01")["questions"]
    assert client.send("GET", "/api/example?name=../server").status == 400


def test_a_text_is_kept_and_saved(client: Client) -> None:
    client.run("first = 1\n")
    assert client.json("POST", "/api/save", {"text": "second = 2\n"})["file"] == str(saving.kept())
    assert client.json("GET", "/api/state")["text"] == "second = 2\n"


def test_a_file_is_written_when_it_is_saved_alone(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("x = 1\n")
    with Server(path) as server:
        assert server.state()["text"] == "x = 1\n"
        list(server.run({"text": "x = 2\n", "panes": []}, lambda: True))
        assert path.read_text() == "x = 1\n"
        server.save({"text": "x = 3\n"})
        assert path.read_text() == "x = 3\n"


def test_a_run_that_arrives_late_leaves_the_newer_one_alone(runner: Runner) -> None:
    newer = runner.run("x = 1\n", ["values"], 2, page="one")
    assert next(newer)["event"] == "started"
    assert [event["event"] for event in runner.run("x = 2\n", ["values"], 1, page="one")] == ["stopped"]
    assert [event["event"] for event in newer] == ["pane", "done"]
    for page in ("two", "", "one"):  # after another page, numbers say nothing
        assert list(runner.run("", [], 1, page=page))[-1]["event"] == "done"


def test_what_cannot_be_opened_is_told(tmp_path: Path, client: Client) -> None:
    (tmp_path / "bytes.py").write_bytes(b"\xff\xfe")
    with pytest.raises(errors.InputError, match=r"cannot open .*bytes.py"):
        Server(tmp_path / "bytes.py")
    with pytest.raises(errors.InputError, match="no example 'nothing'"):
        Server(example="nothing")
    with pytest.raises(errors.InputError, match="cannot serve on port"):
        Server(port=client.server.server_port)


def test_names_are_completed(client: Client) -> None:
    pytest.importorskip("jedi", reason="completions need jedi")
    text = "import glassgrad as gg\ngg.ten"
    found = client.json("POST", "/api/complete", {"text": text, "line": 2, "column": 6})
    assert "tensor" in [one["name"] for one in found["completions"]]
    text = "def f(first, second):\n    pass\nf(1, "
    (one,) = client.json("POST", "/api/signature", {"text": text, "line": 3, "column": 5})["signatures"]
    assert (one["index"], one["params"]) == (1, ["first", "second"])
    assert client.json("POST", "/api/complete", {"text": "", "line": 9, "column": 9}) == {"completions": []}


def test_an_exercise_is_judged(client: Client) -> None:
    text = client.json("GET", "/api/example?name=exercise-01")["text"]
    found = client.json("POST", "/api/judge", {"exercise": "exercise-01", "text": text})
    assert found["passed"] is False
    assert found["hints"]
    solution = next((Path(__file__).parents[1] / "lessons" / "solutions").glob("01_*.py")).read_text()
    found = client.json("POST", "/api/judge", {"exercise": "exercise-01", "text": f"{text}\n{solution}"})
    assert found["passed"] is True, found
    found = client.json("POST", "/api/judge", {"exercise": "exercise-01", "text": "1 / 0"})
    assert "ZeroDivisionError" in found["message"]


def test_programs_are_exported(client: Client) -> None:
    text = '"""A title.\n\nAbout it.\n"""\n\n# Prose.\n\nx = 1\n'
    assert client.send("POST", "/api/export", {"text": text, "format": "py"}).body.decode() == text
    cells = json.loads(client.send("POST", "/api/export", {"text": text, "format": "ipynb"}).body)["cells"]
    assert [(one["cell_type"], "".join(one["source"])) for one in cells] == [
        ("markdown", "# A title\n\nAbout it."),
        ("markdown", "Prose."),
        ("code", "x = 1"),
    ]
    (cell,) = json.loads(saving.as_notebook("x = ("))["cells"]
    assert cell["source"] == ["x = ("]
    assert json.loads(saving.as_notebook("x = 1\ny = 2"))["cells"][-1]["source"] == ["x = 1\n", "y = 2"]


def test_a_recording_cannot_end_its_element(client: Client) -> None:
    text = "x = '</script><script>alert(1)</script>'\nprint(x)\n"
    data = saving.recording(text, client.server.runner.run(text, ["values"], 1))
    *said, values = data["events"]
    assert "".join(one["text"] for one in said) == "</script><script>alert(1)</script>\n"
    assert values["data"]["variables"][0]["name"] == "x"
    if not (saving.PAGE / "playground.html").is_file():
        with pytest.raises(errors.InputError, match=r"cannot open .*playground.html"):
            saving.as_page(data)
        return
    page = saving.as_page(data)
    assert "<script>alert(1)" not in page.partition('id="data"')[2]
    assert 'src="playground.js"' not in page
