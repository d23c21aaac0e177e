"""What was seen since the start, or since `r`: a frame each time something new was told.

history.add(picture, at=12.0); history.course(("gpu", "0", "utilization_percent"), 40, now=12.3)  ->  [None, …, 97.0]

Time is that of arrival here, so that clocks that differ leave no gaps. A file of it: see saving.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from trainvitals.tui.picture import PHASE, Gpu, Picture, Run, Values

Key = tuple[str, str, str]
MOST_FRAMES = 600
GPU_FIELDS = ("utilization_percent", "memory_used_mb", "memory_total_mb", "memory_percent", "temperature_celsius",
              "power_draw_watts", "fan_speed_percent")  # fmt: skip
RUN_FIELDS = ("step", "loss", "learning_rate", "gradient_norm", "throughput_samples_per_sec", "tokens_per_second")
# Ticks come a little early and late.
_LATE = 1.6
PHASE_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class Frame:
    """`at` by the monotonic clock here, `told` as it was stamped."""

    at: float
    told: float
    interval: float
    values: dict[Key, float]


@dataclass(slots=True)
class History:
    frames: deque[Frame] = field(default_factory=lambda: deque(maxlen=MOST_FRAMES))
    gpus: dict[int, Gpu] = field(default_factory=dict)
    runs: tuple[str, ...] = ()
    node: str = ""

    def add(self, picture: Picture, at: float, interval: float) -> None:
        """The same picture again is nothing new."""
        if picture.at is None or (self.frames and self.frames[-1].told == picture.at):
            return
        self.node, self.runs = picture.node, tuple(run.run for run in picture.runs)
        values: dict[Key, float] = {}
        for gpu in picture.gpus:
            self.gpus[gpu.number] = gpu
            values |= {("gpu", str(gpu.number), name): gpu.values[name] for name in GPU_FIELDS if name in gpu.values}
        for run in picture.runs:
            values |= _run_values(run)
        self.frames.append(Frame(at, picture.at, max(interval, picture.interval), values))

    def recall(self, past: Iterable[Frame]) -> None:
        """What was before the first frame."""
        first = self.frames[0].at - self.frames[0].interval / 2 if self.frames else float("inf")
        earlier = [frame for frame in past if frame.at < first]
        self.frames.extendleft(reversed(earlier[len(self.frames) - MOST_FRAMES :]))

    def clear(self) -> None:
        self.frames.clear()
        self.gpus.clear()
        self.runs = ()

    def course(self, key: Key, points: int, now: float) -> list[float | None]:
        """The last points up to `now`, a tick apart; None where nothing was known."""
        found: list[float | None] = []
        later = now
        for frame in self._back_from(now):
            late = (later - frame.at) / frame.interval
            found += [None] * (round(min(late, points)) - bool(found) if late > _LATE else 0)
            found.append(frame.values.get(key))
            later = frame.at
            if len(found) >= points:
                break
        return [*[None] * (points - len(found)), *reversed(found[:points])]

    def phases(self, run: str, now: float) -> dict[str, float]:
        """What the run's first rank spent lately, as shares of its time."""
        newest: Values = {}
        oldest: Values = {}
        for frame in self._back_from(now):
            told = {key[2]: value for key, value in frame.values.items() if key[1] == run and key[2].startswith(PHASE)}
            if not told or (oldest and sum(told.values()) > sum(oldest.values())):
                break
            newest, oldest = newest or told, told
            if now - frame.at > PHASE_SECONDS:
                break
        spent = {name: newest[name] - oldest.get(name, 0.0) for name in newest}
        whole = sum(spent.values())
        return {name.removeprefix(PHASE): value / whole for name, value in spent.items()} if whole > 0 else {}

    def _back_from(self, now: float) -> Iterator[Frame]:
        return (frame for frame in reversed(self.frames) if frame.at <= now)


def _run_values(run: Run) -> dict[Key, float]:
    if not run.is_live:
        return {}
    values = told_of(run)
    return {("run", run.run, name): value for name, value in values.items()
            if name in RUN_FIELDS or name.startswith(PHASE)}  # fmt: skip


def told_of(run: Run) -> Values:
    """What its first rank tells."""
    return run.ranks[0].values if run.ranks else {}
