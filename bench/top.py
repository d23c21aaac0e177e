"""Processor time of the dashboard in a terminal: of an agent, and by itself, beside nvitop on the same GPUs.

Each draws on a pseudo-terminal of its own, of 80 by 24 unless its row says otherwise, which is read as a terminal
emulator would.
"""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
import threading
import time
from contextlib import suppress
from pathlib import Path

from bench.rows import Row, Section
from bench.stage import TOOLS, Stage, Target, wait_until
from tests.ports import free_port

CPU_GOAL, SMALL, LARGE = 2.0, (80, 24), (160, 50)
PEER = "nvitop"


def measure(stage: Stage) -> Section:
    with stage.scene():
        agent = stage.agent("top")
        stage.trainer("top")
        stage.mover()
        top = (sys.executable, "-m", "trainvitals", "top")
        remote = (*top, "--remote", f"http://127.0.0.1:{agent.port}")
        itself = (*top, "--port", str(free_port()), "--dir", str(stage.journal("top")))
        nvitop = (str(TOOLS / "nvitop"), "--monitor", "full", "--readonly")
        screens = {
            "reading an agent": Screen(stage, SMALL, *remote),
            "reading an agent, 160 by 50": Screen(stage, LARGE, *remote),
            "by itself": Screen(stage, SMALL, *itself),
            PEER: Screen(stage, SMALL, *nvitop),
            f"{PEER} --interval 1": Screen(stage, SMALL, *nvitop, "--interval", "1"),
        }
        time.sleep(stage.few_or(3, 10))
        seconds = stage.few_or(5, 60)
        before = {name: screen.figures() for name, screen in screens.items()}
        time.sleep(seconds)
        after = {name: screen.figures() for name, screen in screens.items()}
    share = {name: 100 * (after[name][0] - before[name][0]) / seconds for name in screens}
    written = {name: (after[name][1] - before[name][1]) / seconds for name in screens}
    return Section("Dashboard in a terminal", _rows(share, written, seconds), [NOTE])


NOTE = (
    "All run in the same minute on 8 GPUs whose readings move once a second, beside two runs of 4 steps a second; ours "
    "draw each second, nvitop every two unless its row says otherwise. `By itself` samples GPUs and host, follows the "
    "runs and looks for findings, as an agent does, and draws; nvitop samples GPUs and processes and draws. Processor "
    "time is user and system time from /proc/PID/stat, as a share of one core."
)


def _rows(share: dict[str, float], written: dict[str, float], seconds: int) -> list[Row]:
    often, samples = f"{PEER} --interval 1", f"{seconds} s"
    ours = [name for name in share if not name.startswith(PEER)]
    rows = [Row(f"CPU of `trainvitals top`, {name}", share[name], share[peer], peer, "%", f"≤ {CPU_GOAL:g} %",
                share[name] <= CPU_GOAL, samples) for name in ours for peer in (PEER, often)]  # fmt: skip
    return [*rows, Row("bytes drawn a second, reading an agent", written["reading an agent"], written[often], often)]


class Screen:
    """A program on a terminal, and what it cost."""

    def __init__(self, stage: Stage, size: tuple[int, int], *command: str) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
        env = {**stage.env, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
        self._process = subprocess.Popen(
            ["setsid", "--ctty", *command], env=env, stdin=slave, stdout=slave, stderr=slave
        )
        os.close(slave)
        stage.at_end(self._end)
        self._written = 0
        threading.Thread(target=self._read, daemon=True).start()
        wait_until(lambda: self._written > 2000 or self._process.poll() is not None, f"{Path(command[0]).name} draws")
        if self._process.poll() is not None:
            raise RuntimeError(f"{' '.join(command)} ended with {self._process.returncode}")

    def figures(self) -> tuple[float, int]:
        """Seconds of a processor, and bytes written."""
        return Target("", self._process.pid, 0).cpu_seconds(), self._written

    def _read(self) -> None:
        with suppress(OSError):
            while part := os.read(self._master, 65536):
                self._written += len(part)

    def _end(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._master)
