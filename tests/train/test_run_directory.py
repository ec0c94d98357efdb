"""A run directory appears completely or not at all, and belongs to one process at a time."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from glassgrad.data import atomic
from glassgrad.errors import InputError
from glassgrad.train.kept import rundir
from glassgrad.train.kept.rundir import RunDirectory

from .fitting import dead_process


def fill(run: RunDirectory) -> None:
    run.config.write_text("x = 1\n")
    run.state.write_bytes(b"state")


def everything(folder: Path) -> list[str]:
    return sorted(str(entry.relative_to(folder)) for entry in folder.rglob("*"))


def test_a_run_appears_with_its_files(tmp_path: Path) -> None:
    run = rundir.create(tmp_path / "deep" / "down" / "run", "names", fill)
    assert everything(tmp_path / "deep") == ["down", "down/run", "down/run/config.toml", "down/run/state.safetensors"]
    assert RunDirectory.existing(run.path).path == run.path


def test_an_empty_directory_may_be_used(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    rundir.create(tmp_path / "run", "names", fill)
    assert (tmp_path / "run" / "config.toml").exists()


def test_numbers_go_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "names-final").mkdir(parents=True)
    (tmp_path / "runs" / "other-077").mkdir()
    made = [rundir.create(None, "names", fill).path for _ in range(2)]
    (tmp_path / "runs" / "names-012").mkdir()
    made.append(rundir.create(None, "names", fill).path)
    assert [str(path) for path in made] == ["runs/names-001", "runs/names-002", "runs/names-013"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError, OSError])
def test_nothing_stays_when_it_cannot_be_filled(tmp_path: Path, error: type[BaseException]) -> None:
    def fail(run: RunDirectory) -> None:
        fill(run)
        raise error(28, "No space left on device")

    with pytest.raises(InputError if error is OSError else error):
        rundir.create(tmp_path / "a" / "b" / "run", "names", fail)
    assert everything(tmp_path) == []


def test_directories_that_are_taken(tmp_path: Path) -> None:
    rundir.create(tmp_path / "run", "names", fill)
    with pytest.raises(InputError, match="already holds a run; continue it with --resume"):
        rundir.create(tmp_path / "run", "names", fill)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("dear")
    (tmp_path / "file").write_text("text")
    for name in ("full", "file"):
        with pytest.raises(InputError, match="exists and is not an empty directory"):
            rundir.create(tmp_path / name, "names", fill)
    assert everything(tmp_path) == [
        "file",
        "full",
        "full/letter.txt",
        "run",
        "run/config.toml",
        "run/state.safetensors",
    ]


def test_places_where_nothing_can_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    with pytest.raises(InputError, match=r"cannot make the run directory .*: (Not a directory|File exists)"):
        rundir.create(tmp_path / "file" / "deep" / "run", "names", fill)
    assert everything(tmp_path) == ["file"]


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a file system that refuses directories")
def test_file_systems_that_refuse(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot make the run directory"):
        rundir.create(Path("/proc/self/run"), "names", fill)


@pytest.mark.skipif(os.geteuid() == 0, reason="permissions do not bind the superuser")
def test_a_directory_without_write_permission(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(InputError, match=r"cannot make the run directory .*: Permission denied"):
        rundir.create(tmp_path / "run", "names", fill)


def test_directories_that_are_no_run(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    (tmp_path / "empty").mkdir()
    (tmp_path / "half").mkdir()
    (tmp_path / "half" / "config.toml").write_text("")
    for name, reason in (
        ("none", "there is no such directory"),
        ("file", "it is a file"),
        ("empty", "the directory has no config.toml"),
        ("half", "the directory has no state.safetensors"),
    ):
        with pytest.raises(InputError, match=f"no run at .*{name}: {reason}"):
            RunDirectory.existing(tmp_path / name)


@pytest.mark.skipif(sys.platform == "win32", reason="flock is a Unix call")
def test_what_a_kill_left_behind_is_swept_away(tmp_path: Path) -> None:
    run = rundir.create(tmp_path / "run", "names", fill)
    (run.path / ".state.safetensors.123.tmp").write_bytes(b"half")
    with run.lock():
        assert sorted(entry.name for entry in run.path.iterdir()) == [".lock", "config.toml", "state.safetensors"]


@pytest.mark.skipif(sys.platform == "win32", reason="flock is a Unix call")
def test_one_process_at_a_time(tmp_path: Path) -> None:
    run = rundir.create(tmp_path / "run", "names", fill)
    program = (
        "import sys; from pathlib import Path; from glassgrad.train.kept.rundir import RunDirectory\n"
        "with RunDirectory(Path(sys.argv[1])).lock(): print('got it')"
    )
    command = [sys.executable, "-c", program, str(run.path)]
    with run.lock():
        other = subprocess.run(command, capture_output=True, text=True, check=False)
        assert "is being trained by another process" in other.stderr
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "got it\n"


# --- what killed processes leave ----------------------------------------------------------------------


def test_only_stale_files_of_our_own_are_swept(tmp_path: Path) -> None:
    dead, alive = dead_process(), os.getppid()
    gone = [f".a.{dead}.tmp", f".b.c.{dead}.tmp"]
    kept = [f".a.{alive}.tmp", ".a.tmp", f"a.{dead}.tmp", ".a.x.tmp", f".a.{dead}.tmp.bak", f"..{dead}", ".editor.swp"]
    for name in (*gone, *kept):
        (tmp_path / name).write_bytes(b"half")
    atomic.sweep(tmp_path, "a")
    assert everything(tmp_path) == sorted([*kept, gone[1]])
    atomic.sweep(tmp_path)
    assert everything(tmp_path) == sorted(kept)
    atomic.sweep(tmp_path, alone=True)
    assert everything(tmp_path) == sorted(kept[1:])


def test_where_processes_cannot_be_asked_age_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "kill", lambda *args: pytest.fail("would end a process on Windows"))
    for name, age in ((".old.123.tmp", 7200), (".young.123.tmp", 60)):
        (tmp_path / name).write_bytes(b"half")
        os.utime(tmp_path / name, (time.time() - age,) * 2)
    atomic.sweep(tmp_path, ask=False)
    assert everything(tmp_path) == [".young.123.tmp"]


def test_a_half_made_run_of_a_killed_process_is_swept(tmp_path: Path) -> None:
    half = tmp_path / f".run.{dead_process()}.tmp"
    half.mkdir()
    (half / "config.toml").write_text("x = 1\n")
    mine = tmp_path / f".other.{dead_process()}.tmp"
    mine.mkdir()
    rundir.create(tmp_path / "run", "names", fill)
    assert not half.exists()
    assert mine.exists(), "another run's, which its own resume looks after"


def test_users_files_in_a_run_stay(tmp_path: Path) -> None:
    run = rundir.create(tmp_path / "run", "names", fill)
    (run.path / ".notes.tmp").write_text("mine")
    (run.path / ".state.safetensors.99.tmp").write_bytes(b"half")
    with run.lock():
        assert (run.path / ".notes.tmp").exists()
        assert not (run.path / ".state.safetensors.99.tmp").exists()


class Locks:
    """Windows' way to lock a part of a file."""

    LK_NBLCK, LK_UNLCK = 2, 0
    taken = False

    @classmethod
    def locking(cls, descriptor: int, mode: int, count: int) -> None:
        assert count == 1
        assert os.fstat(descriptor)
        if mode == cls.LK_NBLCK and cls.taken:
            raise OSError(13, "Permission denied")
        cls.taken = mode == cls.LK_NBLCK


def test_a_run_is_locked_on_windows_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = rundir.create(tmp_path / "run", "names", fill)
    monkeypatch.setitem(sys.modules, "msvcrt", Locks)
    monkeypatch.setattr(sys, "platform", "win32")
    with run.lock():
        assert Locks.taken
        with pytest.raises(InputError, match="is being trained by another process"), RunDirectory(run.path).lock():
            pytest.fail("locked twice")
    monkeypatch.undo()
