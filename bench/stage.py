"""The processes that are measured: started here, asked over loopback, and ended by their own process id.

with Stage(quick=True) as stage:
    agent = stage.agent("idle")
    print(agent.scraper().get(), agent.cpu_seconds())
"""

import http.client
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from tests.fakenvml import Scenario, build, environment
from tests.ports import free_port

ROOT = Path(__file__).parents[1]
TOOLS = Path(sys.executable).parent
AGENTS = ROOT / ".cache" / "agent" / "bin" / "python"
GPUS = 8
_TICKS = os.sysconf("SC_CLK_TCK")


class Scraper:
    """Asks for /metrics over one connection, and anew where the server closes it, as Prometheus does."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        self._is_used = False

    def get(self) -> bytes:
        """A connection that was closed while it was idle is made anew, once."""
        try:
            return self._ask()
        except (http.client.RemoteDisconnected, ConnectionError):
            if not self._is_used:
                raise
            self._is_used = False
            self._connection.close()
            return self._ask()

    def _ask(self) -> bytes:
        self._connection.request("GET", "/metrics")
        text = self._connection.getresponse().read()
        self._is_used = True
        return text

    def timed(self) -> float:
        began = time.perf_counter()
        self.get()
        return time.perf_counter() - began

    def close(self) -> None:
        self._connection.close()


@dataclass
class Target:
    """A monitoring process and what the kernel says it uses."""

    name: str
    pid: int
    port: int

    def scraper(self) -> Scraper:
        return Scraper(self.port)

    def cpu_seconds(self) -> float:
        stat = Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(stat[11]) + int(stat[12])) / _TICKS

    def memory(self) -> dict[str, float]:
        """Bytes: `Rss`, and `Pss`, which counts a page shared by n processes as one nth."""
        text = Path(f"/proc/{self.pid}/smaps_rollup").read_text(encoding="utf-8")
        fields = (line.split() for line in text.splitlines()[1:])
        return {words[0].rstrip(":"): float(words[1]) * 1024 for words in fields}


class Stage:
    """A folder, the stand-in for NVML with its scenario, and every process started on it."""

    def __init__(self, *, quick: bool = False) -> None:
        self.quick = quick
        self._exits = ExitStack()

    def __enter__(self) -> "Stage":
        self.folder = Path(self._exits.enter_context(tempfile.TemporaryDirectory(prefix="trainvitals-bench-")))
        library = build(self.folder / "nvml")
        self.scenario = Scenario(self.folder / "scenario", f"gpus {GPUS}")
        ours = {name: value for name, value in os.environ.items() if not name.startswith("TRAINVITALS_")}
        self.env = {
            **ours,
            **environment(library.parent, self.scenario.path),
            "PYTHONPATH": f"{ROOT}:{ROOT / 'collector' / 'src'}",
        }
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:  # fmt: skip
        self._exits.close()

    def few_or(self, few: int, many: int) -> int:
        return few if self.quick else many

    def scene(self) -> ExitStack:
        """Processes started since are ended when the block that holds it ends."""
        outer, self._exits = self._exits, ExitStack()
        scene = ExitStack()
        scene.callback(self._leave, outer, self._exits)
        return scene

    def _leave(self, outer: ExitStack, inner: ExitStack) -> None:
        self._exits = outer
        inner.close()

    def at_end(self, end: Callable[[], object]) -> None:
        """Of the scene, or of the stage where there is none."""
        self._exits.callback(end)

    def start(self, name: str, *command: str, where: Path | None = None) -> "subprocess.Popen[bytes]":
        log = self._exits.enter_context((self.folder / f"{name}.log").open("wb"))
        process = subprocess.Popen(command, env=self.env, stdin=subprocess.PIPE, stdout=log, stderr=log,
                                   cwd=where)  # fmt: skip
        self._exits.callback(_end, process)
        return process

    def wall(self, *command: str) -> float:
        """Seconds from start to end of a command. Waiting with a timeout would poll, in steps of up to 50 ms."""
        began = time.perf_counter()
        process = subprocess.Popen(command, env=self.env, stdout=subprocess.DEVNULL)
        watchdog = threading.Timer(60.0, process.kill)
        watchdog.start()
        status = process.wait()
        taken = time.perf_counter() - began
        watchdog.cancel()
        if status:
            raise RuntimeError(f"{' '.join(command)} ended with {status}")
        return taken

    def agent(self, name: str, interval: float = 1.0) -> Target:
        """`trainvitals serve` with a journal of its own, and in `make bench` the packages alone that users have."""
        python = str(AGENTS) if AGENTS.exists() else sys.executable
        return self._serving(
            name, python, "-m", "trainvitals.cli", "serve", "--dir", str(self.journal(name)),
            "--interval", str(interval))  # fmt: skip

    def nvitop(self, interval: float = 1.0) -> Target:
        command = ("--bind-address", "127.0.0.1", "--hostname", "node", "--interval", str(interval))
        return self._serving("nvitop-exporter", str(TOOLS / "nvitop-exporter"), *command)

    def plain(self, series: int, interval: float = 1.0) -> Target:
        """Gauges of prometheus-client."""
        command = ("--series", str(series), "--interval", str(interval))
        return self._serving("prometheus-client", sys.executable, "-m", "bench.plain_exporter", *command)

    def trainer(self, name: str, runs: int = 2, ranks: int = 2) -> None:
        """Live runs that log four steps a second into that agent's journal."""
        command = ("-m", "bench.trainer", str(self.journal(name)), str(runs), str(ranks))
        self.start(f"{name}-trainer", sys.executable, *command)

    def mover(self, seconds: float = 1.0) -> None:
        """Readings of the stand-in change as often as this."""
        self.start("mover", sys.executable, "-m", "bench.mover", str(self.scenario.path), str(GPUS), str(seconds))

    def journal(self, name: str) -> Path:
        return self.folder / "journals" / name

    def _serving(self, name: str, *command: str) -> Target:
        port = free_port()
        process = self.start(name, *command, "--port", str(port))
        target = Target(name, process.pid, port)
        wait_until(lambda: process.poll() is not None or _answers(target), f"{name} answers")
        if process.poll() is not None:
            raise RuntimeError(f"{name} ended: {(self.folder / f'{name}.log').read_text()[-2000:]}")
        return target


def wait_until(is_so: Callable[[], object], what: str, seconds: float = 30.0, pause: float = 0.05) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {seconds:g} s: {what}")
        time.sleep(pause)


def _answers(target: Target) -> bool:
    scraper = target.scraper()
    try:
        return b"gpu" in scraper.get()
    except OSError:
        return False
    finally:
        scraper.close()


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(timeout=5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdin:
        process.stdin.close()
