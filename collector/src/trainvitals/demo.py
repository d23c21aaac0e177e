"""A simulated distributed run beside simulated GPUs, going through what a real one may.

The trainer is a process of its own and writes a journal as any run would: `python -m trainvitals.demo DIR START
PARENT SEED NODE...`. Agents and trainer follow the same course by the time that passed since the start. The trainer
ends with its parent, however that ends, and leaves nothing behind. Where there are several nodes, each has a journal
of its own in DIR/NODE, as machines have that share no storage.
"""

import itertools
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from trainvitals import starting
from trainvitals.journal import runs
from trainvitals.journal.run_files import RunFiles
from trainvitals.sources.simulated import WHOLE_NODE, SimulatedSource

RANKS = 8
SLOW_RANK = 6
STEP_SECONDS = 0.25
PLANNED_STEPS = 20_000
CHECKPOINT_STEPS = 100
CHECKPOINT_SECONDS = 0.6


class Phase(NamedTuple):
    """What holds for a while: of the GPUs the scenario, of a step what it costs."""

    name: str
    seconds: float
    scenario: str
    told: str
    data_wait: float = 0.005
    slowdown: float = 1.0
    steps: bool = True


PHASES = (
    Phase("healthy", 45, "healthy", "a fresh run, all GPUs busy"),
    Phase("data-starved", 30, "starved", "data wait rises, GPU utilisation falls", data_wait=0.45),
    Phase("healthy again", 15, "healthy", "data wait falls, all GPUs are busy"),
    Phase("straggling", 30, "healthy", "rank 6 is slow though its GPU is well, the others wait for it", slowdown=1.4),
    Phase("throttled", 30, "throttled", "GPU 6 is hot and slow, the other ranks wait for it", slowdown=1.6),
    Phase("NaN", 15, "healthy", "loss and gradient norm are NaN"),
    Phase("hang", 90, "hang", "no step ends, though GPUs show 100%", steps=False),
    Phase("Xid", 20, "xid79", "GPU 6 falls off the bus with Xid 79; then the run crashes and a new one begins",
          steps=False),
)  # fmt: skip
CYCLE_SECONDS = sum(phase.seconds for phase in PHASES)


def phase_at(elapsed: float) -> Phase:
    left = elapsed % CYCLE_SECONDS
    for phase in PHASES:
        left -= phase.seconds
        if left < 0:
            return phase
    return PHASES[-1]


def scenario_at(elapsed: float) -> str:
    return phase_at(elapsed).scenario


def gpus(node: int, nodes: int, seed: int) -> SimulatedSource:
    """A node's share of the GPUs. What befalls one of them befalls the last node's; all nodes share the load."""

    def scenario(elapsed: float) -> str:
        found = scenario_at(elapsed)
        return found if node == nodes - 1 or found in WHOLE_NODE else "healthy"

    return SimulatedSource(RANKS // nodes, scenario, seed + node)


def root_of(folder: Path, names: Sequence[str], node: int) -> Path:
    return folder if len(names) == 1 else folder / names[node]


def announce(tell: Callable[[str], None]) -> None:
    """A line for every phase but the first, as it begins; returns never."""
    turns = time.time()
    for number, phase in enumerate(itertools.cycle(PHASES)):
        if number:
            tell(f"phase: {phase.name} for {phase.seconds:g} s: {phase.told}")
        turns += phase.seconds
        time.sleep(max(0.0, turns - time.time()))


@contextmanager
def trainer(seed: int, names: Sequence[str]) -> Iterator[Path]:
    """A journal of its own for each node, with a trainer beside them; all are gone at the end."""
    folder = Path(tempfile.mkdtemp(prefix="trainvitals-demo-"))
    words = [str(folder), str(time.time()), str(os.getpid()), str(seed), *names]
    # A session of its own: Ctrl-C at the terminal is the agent's to handle.
    process = subprocess.Popen(starting.words("trainvitals.demo", *words), start_new_session=True)
    try:
        yield folder
    finally:
        before = {number: signal.signal(number, signal.SIG_IGN) for number in _ENDINGS}
        _end(process)
        shutil.rmtree(folder, ignore_errors=True)
        for number, handler in before.items():
            signal.signal(number, handler)


_ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(timeout=0.5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class Orphaned(Exception):
    """The agent that the trainer belongs to is gone."""


class Trainer:
    """One launch of eight ranks, written by one process in their place."""

    def __init__(self, folder: Path, began: float, parent: int, seed: int, names: Sequence[str]) -> None:
        self._began, self._parent = began, parent
        self._random = random.Random(7)
        self._places = [
            (root_of(folder, names, node), {"host": name, "gpus": [{"gpu": str(gpu.index), "uuid": gpu.key}]})
            for node, name in enumerate(names)
            for gpu in gpus(node, len(names), seed).discover()
        ]
        self._ranks: list[RunFiles] = []
        self._step = 0

    def run_cycle(self) -> None:
        """From a fresh start through every phase to the crash that ends the hang."""
        self._start()
        cycle = self._elapsed() // CYCLE_SECONDS
        while self._elapsed() // CYCLE_SECONDS == cycle:
            if os.getppid() != self._parent:
                raise Orphaned
            phase = phase_at(self._elapsed())
            if phase.steps:
                self._do_step(phase)
            else:
                time.sleep(0.2)
        for rank in self._ranks:
            rank.end("crashed", error="RuntimeError: NCCL watchdog: collective timed out")

    def _elapsed(self) -> float:
        return time.time() - self._began

    def _start(self) -> None:
        self._step = 0
        self._ranks = []
        run = ""
        for rank, (root, facts) in enumerate(self._places):
            # Without the environment: this is no run of the job that the demo may have been started in.
            claimed = runs.claim(root, "demo-gpt", rank=rank, world_size=RANKS, run_id=run, facts=facts, environ={})
            run = claimed.run
            self._ranks.append(RunFiles(claimed, "demo-gpt", framework="simulated", planned_steps=PLANNED_STEPS,
                                        config={"layers": 24, "batch_size": 512}))  # fmt: skip

    def _do_step(self, phase: Phase) -> None:
        forward = 0.4 * STEP_SECONDS * phase.slowdown
        took = phase.data_wait + STEP_SECONDS * phase.slowdown * self._random.uniform(0.97, 1.03)
        self._step += 1
        checkpoint = {} if self._step % CHECKPOINT_STEPS else {"checkpoint_seconds": CHECKPOINT_SECONDS}
        time.sleep(took + sum(checkpoint.values()))
        for rank, files in enumerate(self._ranks):
            waits = 1.0 if rank == SLOW_RANK or phase.slowdown == 1.0 else 1 / phase.slowdown
            files.metrics.append(self._record(phase, took, forward * waits) | checkpoint)
        if checkpoint:
            self._ranks[0].events.append({"event": "checkpoint", "step": self._step, "path": "simulated"})

    def _record(self, phase: Phase, took: float, forward: float) -> dict[str, float]:
        bad = phase.name == "NaN"
        decay = math.exp(-self._step / 300)
        wait = phase.data_wait * self._random.uniform(0.9, 1.1)
        optimizer = 0.1 * STEP_SECONDS
        return {
            "step": self._step,
            "epoch": round(self._step * 512 / 1_000_000, 4),
            "loss": math.nan if bad else 1.8 + 8.8 * decay + self._random.gauss(0, 0.02),
            "learning_rate": 3e-4 * min(1.0, self._step / 50),
            "gradient_norm": math.nan if bad else 0.6 + 3 * decay + abs(self._random.gauss(0, 0.05)),
            "throughput_samples_per_sec": 512 / RANKS / took,
            "tokens_per_second": 512 * 1024 / RANKS / took,
            "memory_allocated_mb": 61_440.0,
            "memory_reserved_mb": 63_616.0,
            "step_duration_seconds": took,
            "data_wait_seconds": wait,
            "forward_seconds": forward,
            "optimizer_seconds": optimizer,
            "backward_seconds": max(0.0, took - wait - forward - optimizer),
        }


def main(arguments: list[str]) -> None:
    folder = Path(arguments[0])
    one = Trainer(folder, float(arguments[1]), int(arguments[2]), int(arguments[3]), arguments[4:])
    try:
        while True:
            one.run_cycle()
    except Orphaned:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1:])
