"""A run as it is to be recorded: how it is made up, and its files as the journal has them.

Training(steps=2000, ranks=4, curve=falling(10.8, 2.4)).write(root)   ->  root/runs/gemma/…
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.detect.scenarios.curves import Curve, Noise, constant, falling, gaussian, settling
from tests.detect.scenarios.lines import LineFile, write_json
from tests.detect.scenarios.timing import Pace, Pause, Timeline, timeline
from trainvitals.journal.layout import stamped, training_suffix
from trainvitals.journal.record import timestamp_at

T0 = 1772438400.0  # 2026-03-02, 8:00 UTC
GPUS_OF_A_NODE = 8
Line = dict[str, Any]
# Changes a line before it is written: step, rank, line.
Edit = Callable[[int, int, Line], None]


def uuid(host: str, gpu: int) -> str:
    return f"GPU-{random.Random(f'{host}/{gpu}').getrandbits(128):032x}"


@dataclass
class Training:
    run: str = "gemma"
    steps: int = 1000
    ranks: int = 1
    seed: int = 0
    start: float = T0
    first_step: int = 1
    pace: Pace = field(default_factory=Pace)
    curve: Curve = field(default_factory=lambda: falling(10.8, 2.4))
    noise: Noise = field(default_factory=lambda: gaussian(0.03))
    rate: Curve = field(default_factory=lambda: constant(3e-4))
    norm: Callable[[random.Random, int], float] | None = field(default_factory=lambda: settling(1.0))
    edits: tuple[Edit, ...] = ()
    # The loss is told each so many steps, the times of a step always.
    loss_every: int = 1
    # Other ranks tell of a loss of their own; else of times alone.
    all_ranks_tell: bool = True
    has_times: bool = True
    # What its allocator handed out and holds, in MiB.
    memory: tuple[float, float] = (41200.0, 46000.0)
    batch: float = 64.0
    planned: int | None = None
    # finished, crashed, preempted, killed; "" says nothing of an end.
    end: str = "finished"
    end_rank: int = 0
    end_after: float = 2.0
    error: str = ""
    checkpoints: tuple[int, ...] = ()
    # Events of any other kind, by the step that they follow, all of rank 0.
    events: tuple[tuple[int, Line], ...] = ()
    hosts: tuple[str, ...] = ("node-a",)
    uses_gpus: bool = True

    @cached_property
    def line(self) -> Timeline:
        numbers = (self.first_step, self.first_step + self.steps - 1)
        return timeline(self.pace, self.start, numbers, self.ranks, self.seed)

    @property
    def ended(self) -> float:
        return self.line.last + self.end_after

    def at(self, step: int, rank: int = 0) -> float:
        return self.line.end_of(step, rank)

    def host_of(self, rank: int) -> str:
        return self.hosts[min(rank // GPUS_OF_A_NODE, len(self.hosts) - 1)]

    def is_busy(self, when: float) -> bool:
        """Whether a step was under way."""
        return self.line.is_busy(when, self.start + self.pace.lead)

    def write(self, root: Path, bare: bool = False) -> None:
        """`bare`: training files alone, in the folder given."""
        folder = root if bare else root / "runs" / self.run
        folder.mkdir(parents=True, exist_ok=True)
        for rank in range(self.ranks):
            self._write_metrics(folder, rank)
            if not bare:
                self._write_process(folder, rank)
                self._write_events(folder, rank)
        if not bare:
            self._write_run(folder)

    def _write_metrics(self, folder: Path, rank: int) -> None:
        rng = random.Random(f"values/{self.seed}/{rank}")
        line, suffix = self.line, training_suffix(rank, self.ranks)
        file = LineFile(folder / stamped("training_metrics", suffix, self.start))
        for place, number in enumerate(line.numbers):
            if place in line.anew:
                file.close()
                file = LineFile(folder / stamped("training_metrics", suffix, line.anew[place]))
            values = self._values(rng, number, rank)
            if self.has_times:
                values |= self._times(place, rank)
            for edit in self.edits:
                edit(number, rank, values)
            if values:
                file.add({"timestamp": timestamp_at(line.ends[rank][place]), "step": number, **values})
        file.close()

    def _values(self, rng: random.Random, number: int, rank: int) -> Line:
        if number % self.loss_every or (rank and not self.all_ranks_tell):
            return {}
        values: Line = {"loss": self.noise(rng, self.curve(number)), "learning_rate": self.rate(number)}
        if self.norm is not None:
            values["gradient_norm"] = self.norm(rng, number)
        return values

    def _times(self, place: int, rank: int) -> Line:
        line = self.line
        wait, forward, rest = line.waits[rank][place], line.forwards[rank][place], line.rests[rank][place]
        optimizer = 0.05 * (forward + rest)
        values = {"throughput_samples_per_sec": self.batch / (wait + forward + rest),
                  "memory_allocated_mb": self.memory[0], "memory_reserved_mb": self.memory[1],
                  "step_duration_seconds": forward + rest, "data_wait_seconds": wait, "forward_seconds": forward,
                  "backward_seconds": rest - optimizer, "optimizer_seconds": optimizer}  # fmt: skip
        if not self.uses_gpus:
            del values["memory_allocated_mb"], values["memory_reserved_mb"]
        for pause in line.before.get(place, ()):
            if pause.phase:
                values[f"{pause.phase}_seconds"] = values.get(f"{pause.phase}_seconds", 0.0) + pause.seconds
        return values

    def _write_process(self, folder: Path, rank: int) -> None:
        host, local = self.host_of(rank), rank % GPUS_OF_A_NODE
        started = max(self.line.anew.values(), default=self.start)
        write_json(folder / f"process.rank{rank}.json", {
            "host": host, "boot_id": f"boot-of-{host}", "pid": 4000 + rank, "launcher": f"boot-of-{host}:3999:77",
            "rank": rank, "world_size": self.ranks, "started": timestamp_at(started), "local_rank": local,
            **({"gpus": [{"gpu": str(local), "uuid": uuid(host, local)}]} if self.uses_gpus else {})})  # fmt: skip

    def _write_run(self, folder: Path) -> None:
        told = self.end if self.end in ("finished", "crashed", "preempted") else "running"
        content = {"run": self.run, "name": self.run, "framework": "pytorch", "world_size": self.ranks,
                   "planned_steps": self.planned, "tags": [], "config": {"batch_size": self.batch},
                   "start": timestamp_at(self.start), "end": None if told == "running" else timestamp_at(self.ended),
                   "status": told}  # fmt: skip
        content |= {"error": self.error} if self.error else {}
        if self.line.anew:
            content["resumed"] = [timestamp_at(when) for when in self.line.anew.values()]
        write_json(folder / "run.json", content)

    def _write_events(self, folder: Path, rank: int) -> None:
        events = sorted(self._events(rank), key=lambda event: event[0])
        file = LineFile(folder / f"events.rank{rank}.jsonl")
        for when, event in events:
            file.add({"timestamp": timestamp_at(when), **event})
        file.close()
        if self.end == "killed" and rank == self.end_rank:
            killed = {"timestamp": timestamp_at(self.ended), "event": "status", "status": "killed", "rank": rank,
                      "started": timestamp_at(max(self.line.anew.values(), default=self.start))}  # fmt: skip
            reports = LineFile(folder / "agent" / f"{self.host_of(rank)}.jsonl")
            reports.add(killed)
            reports.close()

    def _events(self, rank: int) -> Iterator[tuple[float, Line]]:
        yield from self._phases(rank)
        for place, when in self.line.anew.items():
            step, before = self.line.numbers[place - 1], self.line.ends[rank][place - 1]
            yield before + 0.5, {"event": "signal", "step": step, "signal": "SIGTERM"}
            yield min(before + 1.0, when), {"event": "end", "status": "preempted", "error": "SIGTERM"}
        if rank == 0:
            for step in self.checkpoints:
                yield self.at(step) + 0.01, {"event": "checkpoint", "step": step, "path": f"/ckpt/{step}.pt"}
            for step, event in self.events:
                yield self.at(step) + 0.02, {**event, "step": step}
        if self.end == "preempted":
            yield self.ended - 0.5, {"event": "signal", "step": self.line.numbers[-1], "signal": "SIGTERM"}
        if self.end and (self.end != "killed" or rank != self.end_rank):
            yield self.ended, self._end_event(rank)

    def _end_event(self, rank: int) -> Line:
        """Where one rank crashes or is killed, its launcher ends the others."""
        if self.end in ("crashed", "killed") and rank != self.end_rank:
            return {"event": "end", "status": "preempted", "error": "SIGTERM"}
        return {"event": "end", "status": self.end} | ({"error": self.error} if self.error else {})

    def _phases(self, rank: int) -> Iterator[tuple[float, Line]]:
        line = self.line
        for place, pauses in line.before.items():
            step, when = line.numbers[place - 1], line.ends[rank][place - 1]
            for pause in pauses:
                yield from _phase(pause, step, when)
                when += pause.seconds


def _phase(pause: Pause, step: int, when: float) -> Iterator[tuple[float, Line]]:
    if pause.phase:
        yield when + 0.001, {"event": "phase", "step": step, "phase": pause.phase, "open": True}
        yield when + pause.seconds, {"event": "phase", "step": step, "phase": pause.phase, "open": False}
        if pause.phase == "checkpoint":
            yield when + pause.seconds, {"event": "checkpoint", "step": step, "path": f"/ckpt/{step}.pt"}
