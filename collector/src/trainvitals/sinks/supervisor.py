"""The agent's side: a process a target, started again when it dies, and ended with the agent within seconds.

    sinks = Sinks([Job("wandb=my-project", root="/var/lib/trainvitals", mode="follow")]); sinks.start(); sinks.stop()
One that hangs, or whose backend is down, concerns neither the others nor the agent.
"""

import contextlib
import logging
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from trainvitals.sinks import Target
from trainvitals.sinks.job import Job

STOP_SECONDS = 6.0
RESTART_SECONDS, MAX_RESTART_SECONDS = 1.0, 60.0

log = logging.getLogger("trainvitals.sinks")


class Sinks:
    def __init__(self, jobs: Sequence[Job], scratch: Path | None = None) -> None:
        """`scratch` is a folder that goes when they end."""
        self._keepers, self._scratch = [_Keeper(job) for job in jobs], scratch

    def start(self) -> None:
        for keeper in self._keepers:
            keeper.start()

    def stop(self) -> None:
        for keeper in self._keepers:
            with keeper.lock:
                keeper.ending.set()
        end_all([keeper.process for keeper in self._keepers if keeper.process is not None])
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)


def gpu_series(found: Sequence[Target], folder: Path, name: str) -> Sinks:
    """The series of the node whose lines are in `folder`, from now on and for as long as this process lives."""
    scratch = Path(tempfile.mkdtemp(prefix="trainvitals-")) if found else None
    jobs = [Job(str(target), root="", mode="node", folder=str(folder), run_name=name, began=time.time(),
                scratch=str(scratch)) for target in found]  # fmt: skip
    return Sinks(jobs, scratch)


def end_all(processes: Sequence["subprocess.Popen[str]"]) -> None:
    """They hand on what is there, then end; who is not done in time is killed, and loses nothing by it."""
    for process in processes:
        process.terminate()
    deadline = time.monotonic() + STOP_SECONDS
    for process in processes:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(max(0.0, deadline - time.monotonic()))
        _kill_group(process)


class _Keeper(threading.Thread):
    """Keeps one target's process going, and passes on what it says."""

    def __init__(self, job: Job) -> None:
        super().__init__(name=f"trainvitals-{job.sink.partition('=')[0]}", daemon=True)
        self._job = job
        self.ending = threading.Event()
        self.lock = threading.Lock()
        self.process: subprocess.Popen[str] | None = None
        self._said = ""

    def run(self) -> None:
        pause = RESTART_SECONDS
        while (process := self._spawn()) is not None:
            began = time.monotonic()
            self._listen(process)
            process.wait()
            _kill_group(process)
            pause = RESTART_SECONDS if time.monotonic() - began > MAX_RESTART_SECONDS else pause
            if self.ending.wait(pause):
                return
            pause = min(2 * pause, MAX_RESTART_SECONDS)

    def _spawn(self) -> "subprocess.Popen[str] | None":
        with self.lock:
            if self.ending.is_set():
                return None
            self.process = self._job.start(stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            return self.process

    def _listen(self, process: "subprocess.Popen[str]") -> None:
        """What it says again and again, as while a server is down, is said once."""
        assert process.stderr is not None
        for line in process.stderr:
            if line.strip() and line != self._said:
                self._said = line
                log.warning("%s", line.rstrip())


def _kill_group(process: "subprocess.Popen[str]") -> None:
    """With what it started; the group may be gone already."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
