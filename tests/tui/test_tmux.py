"""Once for real: in tmux, of an agent that is killed and comes back, until a signal ends it."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.collector.support import command_line, serving
from tests.ports import free_port

pytestmark = pytest.mark.skipif(not shutil.which("tmux"), reason="tmux is not installed: .ci/run installs it")
SECONDS = 20.0


class Tmux:
    def __init__(self, folder: Path, *size: str) -> None:
        self._words = ["tmux", "-S", str(folder / "tmux"), "-f", "/dev/null"]
        shell = ("env", "LC_ALL=C.UTF-8", "PS1=$ ", f"TRAINVITALS_DIR={folder}", "sh")
        self.do("new-session", "-d", "-x", size[0], "-y", size[1], *shell)

    def do(self, *words: str) -> str:
        env = {**os.environ, "LC_ALL": "C.UTF-8"}
        return subprocess.run([*self._words, *words], capture_output=True, text=True, timeout=SECONDS, check=True,
                              env=env).stdout  # fmt: skip

    def type(self, *keys: str) -> None:
        self.do("send-keys", *keys)

    def run(self, *words: str) -> None:
        self.type(shlex.join(words), "Enter")

    def shown(self) -> str:
        return self.do("capture-pane", "-p")

    def until(self, is_so: Callable[[str], object]) -> str:
        deadline = time.monotonic() + SECONDS
        while not is_so(text := self.shown()):
            assert time.monotonic() < deadline, f"not within {SECONDS:g} s:\n{text}"
            time.sleep(0.1)
        return text

    def children(self) -> list[int]:
        shell = self.do("list-panes", "-F", "#{pane_pid}").strip()
        return [int(pid) for pid in Path(f"/proc/{shell}/task/{shell}/children").read_text().split()]


@contextmanager
def tmux(folder: Path, *size: str) -> Iterator[Tmux]:
    one = Tmux(folder, *size)
    try:
        yield one
    finally:
        one.do("kill-server")


def test_it_lives_through_its_agents_end_and_leaves_the_terminal_as_it_was(tmp_path: Path) -> None:
    port = str(free_port())
    with tmux(tmp_path, "80", "24") as screen:
        screen.run("echo", "before-all")
        with serving(tmp_path / "journal", "--simulate", "8", "--scenario", "throttled", "--port", port) as agent:
            screen.run(*command_line("top", "--remote", agent.address))
            text = screen.until(lambda text: "heat slows" in text and text.count("°C") >= 8)
            assert f"agent 127.0.0.1:{port}" in text and "before-all" not in text
            assert all(len(line) <= 80 for line in text.splitlines())
            rows = [line.split() for line in text.splitlines() if "━" in line and "%" in line]
            assert [row[0] if row[0] != "▶" else row[1] for row in rows] == [str(number) for number in range(8)]
            screen.type("Down", "Space")
            screen.until(lambda text: "▶   2" in text and "Processes on GPU 2" in text)
            screen.type("?")
            screen.until(lambda text: "any key goes back" in text)
            screen.type("x")
            screen.do("resize-window", "-x", "100", "-y", "30")
            screen.until(lambda text: "MHz" in text)
            # As it was: some versions of tmux leave rows of the other screen where it grew meanwhile.
            screen.do("resize-window", "-x", "80", "-y", "24")
            screen.until(lambda text: "MHz" not in text and "▶   2" in text)
        lost = screen.until(lambda text: "LOST" in text)
        assert "Nothing has been known for" in lost and "°C" not in lost and " W" not in lost
        with serving(tmp_path / "journal", "--simulate", "8", "--port", port):
            screen.until(lambda text: "LOST" not in text and text.count("°C") >= 8)
            (top,) = screen.children()
            os.kill(top, signal.SIGTERM)
            text = screen.until(lambda text: "before-all" in text and not screen.children())
        assert "GPU" not in text
        screen.type("echo still-$((40+2))", "Enter")
        screen.until(lambda text: "echo still-$((40+2))" in text and "\nstill-42" in text)
        assert screen.do("display-message", "-p", "#{alternate_on} #{cursor_flag} #{wrap_flag}").split() == [
            "0",
            "1",
            "1",
        ]


def test_suspended_it_gives_the_shell_back_and_returns(tmp_path: Path) -> None:
    with tmux(tmp_path, "80", "24") as screen:
        screen.type("set -m", "Enter")
        screen.run(sys.executable, "-m", "trainvitals", "top", "--simulate", "2")
        screen.until(lambda text: text.count("°C") >= 2)
        screen.type("C-z")
        screen.until(lambda text: "utilisation" not in text and "$" in text)
        screen.run("echo", "in-between")
        screen.until(lambda text: "\nin-between" in text)
        screen.type("fg", "Enter")
        screen.until(lambda text: text.count("°C") >= 2)
        screen.type("q")
        screen.until(lambda text: "\nin-between" in text and "utilisation" not in text)
