"""The process of one target: reads the journal, hands on what is new, keeps its place. See job.py for what it is told.

It may be killed at any moment. What it says goes to its standard error, a line a matter; in mode `once` its
standard output gets a line of JSON now and then: {"done": 123, "total": 456, "points": 7890}.
"""

import json
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from trainvitals.ending import at_end_of_input
from trainvitals.errors import TrainVitalsError, install_words
from trainvitals.journal import layout
from trainvitals.sinks import SinkError, Target, parse, run_info
from trainvitals.sinks.follow import Follower
from trainvitals.sinks.job import Job
from trainvitals.sinks.run_info import RunInfo
from trainvitals.sinks.source import NodeSource, RunSource, Source
from trainvitals.sinks.state import StateFile, peek, state_path
from trainvitals.sinks.stream import Backend, Stream, words

POLL_SECONDS = 1.0
END_SECONDS = 4.0
RETRY_SECONDS = (1.0, 2.0, 4.0, 0.0)
FAILED = 1

log = logging.getLogger("trainvitals.sinks")


class Worker:
    def __init__(self, job: Job) -> None:
        self._job, self._target = job, parse(job.sink)
        self._root = Path(job.root)
        self.ending = threading.Event()

    def run(self) -> int:
        return {"follow": self._follow, "once": self._once, "node": self._node}[self._job.mode]()

    def open_run(self, folder: Path) -> Stream:
        """The stream of a run, which this process alone hands on from now on."""
        path = state_path(folder, layout.host_name(), self._target)
        file = StateFile(path, self._target, run_info.read(folder).began)
        node = (layout.host_name(), self._job.host or layout.host_name())
        return self._opened(file, lambda at: RunSource(folder, self._root, file.state.began, at, node))

    def _opened(self, file: StateFile, source: Callable[[dict[str, Any]], Source]) -> Stream:
        with ExitStack() as undo:
            undo.callback(file.close)
            stream = Stream(file, source, make_backend(self._target, self._job.run_name))
            undo.callback(stream.close)
            stream.open()
            undo.pop_all()
        return stream

    def _follow(self) -> int:
        follower = Follower(self._root, self._target, self.open_run, self._job.only)
        while not self.ending.is_set():
            follower.advance()
            self.ending.wait(POLL_SECONDS)
        follower.close()
        return 0

    def _node(self) -> int:
        """GPUs alone: from the start of the command to its end."""
        job = self._job
        info = RunInfo(job.run_name, job.run_name, "running", job.began)
        file = StateFile(Path(job.scratch) / "agent" / "sinks" / f"{self._target.key}.json", self._target, job.began)
        stream = self._opened(file, lambda at: NodeSource(Path(job.folder), info, at))
        while not self.ending.is_set():
            stream.advance()
            self.ending.wait(POLL_SECONDS)
        while stream.advance(last=True):
            pass
        stream.finish(info._replace(status="finished", ended=time.time()), [])
        stream.close()
        return 0

    def _once(self) -> int:
        """The whole of a run. A target that does not answer is asked again a few times, then it is an error."""
        for pause in RETRY_SECONDS:
            try:
                return self._hand_on_all(Path(self._job.folder))
            except SinkError:
                raise
            except Exception as error:
                problem = f"{self._target.shown}: {words(error)}"
            if self.ending.wait(pause):
                break
        raise SinkError(f"{problem}: what arrived stays, the same command goes on from there")

    def _hand_on_all(self, folder: Path) -> int:
        if self._has_all(folder):
            return 0
        stream = self.open_run(folder)
        try:
            while not self.ending.is_set() and stream.advance():
                self._report(stream)
            while not self.ending.is_set() and stream.advance(last=True):
                pass
            info = stream.info()
            done = not self.ending.is_set()
            stream.finish(info, [info.status, info.ended] if done and info.is_over else [])
            self._report(stream)
            return 0 if done else FAILED
        finally:
            stream.close()

    def _has_all(self, folder: Path) -> bool:
        """W&B alone: to look there is to start the run there anew."""
        state = peek(state_path(folder, layout.host_name(), self._target))
        info = run_info.read(folder)
        if self._target.kind != "wandb" or state is None or state.over != [info.status, info.ended]:
            return False
        print(json.dumps({"done": 1, "total": 1, "points": state.points}), flush=True)
        return True

    def _report(self, stream: Stream) -> None:
        done, total = stream.progress()
        print(json.dumps({"done": done, "total": total, "points": stream.points}), flush=True)


def make_backend(target: Target, run_name: str = "") -> Backend:
    try:
        return _imported(target, run_name)
    except ImportError as error:
        raise SinkError(f"{target.shown}: {target.kind} cannot be imported ({words(error)}): "
                        + install_words(target.kind)) from error  # fmt: skip


def _imported(target: Target, run_name: str) -> Backend:
    """Only the library that is wanted is imported."""
    if target.kind == "tensorboard":
        from trainvitals.sinks.tensorboard import TensorBoard

        return TensorBoard(target.place)
    if target.kind == "wandb":
        from trainvitals.sinks.wandb import WeightsAndBiases

        return WeightsAndBiases(target.place, run_name)
    from trainvitals.sinks.mlflow import MLflow

    return MLflow(target.place)


def main() -> int:
    logging.basicConfig(stream=sys.stderr, format="%(message)s", level=logging.WARNING)
    for name in ("mlflow", "alembic", "urllib3", "wandb"):
        logging.getLogger(name).setLevel(logging.ERROR)
    # As they are imported, some of them set levels and handlers of their own again.
    logging.disable(logging.INFO)
    job = Job(**json.loads(sys.stdin.readline()))
    worker = Worker(job)
    signal.signal(signal.SIGTERM, lambda *_: _end(worker))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    at_end_of_input(lambda: _end(worker))
    try:
        return worker.run()
    except TrainVitalsError as error:
        print(error, file=sys.stderr)
    except Exception as error:
        print(f"{parse(job.sink).shown}: {words(error)}", file=sys.stderr)
    return FAILED


def _end(worker: Worker) -> None:
    """Whatever the target's library is doing then."""
    if not worker.ending.is_set():
        worker.ending.set()
        timer = threading.Timer(END_SECONDS, os._exit, (FAILED,))
        timer.daemon = True
        timer.start()


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    # Threads of the libraries may wait for a server that does not answer.
    os._exit(status)
