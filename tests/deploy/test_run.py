"""A program that works for long is heard, ended in time, and not torn from its work by one Ctrl-C."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from deploy import kept, run
from deploy.errors import DeployError

# Says what it hears; ends at the signal whose number it is given.
LISTENING = """
import signal, sys, time
heard = []
def hear(*_):
    heard.append(1)
    print("interrupted", len(heard), flush=True)
    if len(heard) == int(sys.argv[1]):
        print("written down", flush=True)
        sys.exit(7)
signal.signal(signal.SIGINT, hear)
print("ready", flush=True)
while True:
    time.sleep(0.1)
"""

# Locks and follows as `make deploy` does.
BEGINNING = """
import sys
from pathlib import Path
from deploy import kept, run
kept.KEPT = Path(sys.argv[1])
with kept.alone("gcp"):
    words = ["sh", "-c", sys.argv[2]]
    run.follow(words, folder=kept.KEPT, seconds=60, hear=lambda text: print(text, end="", flush=True))
"""


def until(met: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not met():
        assert time.monotonic() < end
        time.sleep(0.05)


def followed(*words: str, folder: Path, seconds: float = 60) -> tuple[int, list[str]]:
    heard: list[str] = []
    return run.follow(words, folder=folder, seconds=seconds, hear=heard.append), heard


def interrupting(folder: Path, times: int) -> list[str]:
    """What a program says that is interrupted so often, once it is ready and after each word."""
    heard: list[str] = []

    def hear(text: str) -> None:
        heard.append(text.strip())
        if len(heard) <= times:
            threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()

    with pytest.raises(KeyboardInterrupt):
        run.follow([sys.executable, "-c", LISTENING, str(times)], folder=folder, seconds=60, hear=hear)
    return heard


def test_it_is_heard_line_by_line_with_what_it_complains_of(tmp_path: Path) -> None:
    assert followed("sh", "-c", "echo one; echo two >&2; exit 3", folder=tmp_path) == (3, ["one\n", "two\n"])


def test_it_is_interrupted_once_and_waited_for(tmp_path: Path) -> None:
    assert interrupting(tmp_path, 1) == ["ready", "interrupted 1", "written down"]


def test_a_second_ctrl_c_goes_on_to_it(tmp_path: Path) -> None:
    assert interrupting(tmp_path, 2) == ["ready", "interrupted 1", "interrupted 2", "written down"]


def test_one_that_does_not_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "GENTLY_SECONDS", 0.5)
    monkeypatch.setattr(run, "SOON_SECONDS", 0.5)
    begun = time.monotonic()
    with pytest.raises(DeployError, match=r"did not end within 1 s and was ended: run this again"):
        followed(sys.executable, "-c", LISTENING, "99", folder=tmp_path, seconds=1)
    assert time.monotonic() - begun < 30


def test_what_it_leaves_in_the_background_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "SOON_SECONDS", 0.5)
    begun = time.monotonic()
    assert followed("sh", "-c", "sleep 20 & echo done", folder=tmp_path) == (0, ["done\n"])
    assert time.monotonic() - begun < 15


def test_it_works_on_when_whoever_began_it_is_killed_and_holds_what_was_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its words go nowhere then, and no pipe ends it at the next of them."""
    monkeypatch.setattr(kept, "KEPT", tmp_path)
    os.mkfifo(tmp_path / "go on")
    script = f"echo begun; read line <'{tmp_path}/go on'; echo more; echo more; touch '{tmp_path}/noted'"
    begun = subprocess.Popen([sys.executable, "-c", BEGINNING, str(tmp_path), script], cwd=kept.ROOT, text=True,
                             stdout=subprocess.PIPE)  # fmt: skip
    assert begun.stdout and begun.stdout.readline() == "begun\n"
    begun.kill()
    begun.wait(20)
    begun.stdout.close()
    with pytest.raises(DeployError, match="a command on gcp was ended hard, what it had begun still works"):
        kept.alone("gcp").__enter__()
    (tmp_path / "go on").write_text("now\n")
    until(lambda: not held("gcp"))
    assert (tmp_path / "noted").exists()


def held(name: str) -> bool:
    try:
        with kept.alone(name):
            return False
    except DeployError:
        return True


def test_what_it_left_in_the_background_holds_no_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "KEPT", tmp_path)
    with kept.alone("gcp"):
        followed("sh", "-c", "sleep 20 & echo done", folder=tmp_path)
    assert not held("gcp")


def test_one_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(DeployError, match="no-such-program is not installed"):
        run.ask(["no-such-program"], folder=tmp_path, seconds=5)
    with pytest.raises(DeployError, match="no-such-program is not installed"):
        followed("no-such-program", folder=tmp_path)


def test_one_that_is_asked_answers_in_time_or_is_told(tmp_path: Path) -> None:
    with pytest.raises(DeployError, match=r"sleep did not end within 0.5 s"):
        run.ask(["sleep", "30"], folder=tmp_path, seconds=0.5)
