"""TrainingThroughputRegression: slower than the run itself was, for a quarter of an hour.

Speed is taken by the minute: as many tokens or samples a second as the run says, else steps by the seconds they took.
"""

from collections import deque

from trainvitals.detect.finding import Finding
from trainvitals.detect.limits import Limits
from trainvitals.detect.line import Line
from trainvitals.detect.stats import mean, median

MINUTE = 60.0
# Of longer samples there are fewer a second.
TOKENS, SAMPLES = "tokens_per_second", "throughput_samples_per_sec"
# Of these minutes before, so many must be known; of the last ones most must be slow.
LEAST_BASELINE, MOST = 10, 0.8
STAYS = 300.0


class ThroughputRegression:
    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._recent = round(limits.throughput_seconds / MINUTE)
        self._speeds: deque[float] = deque(maxlen=self._recent + round(limits.throughput_baseline_seconds / MINUTE))
        self._minute: float | None = None
        self._told: list[float] = []
        self._steps, self._seconds = 0, 0.0
        self._finding: Finding | None = None

    def update(self, line: Line) -> Finding | None:
        minute = line.when // MINUTE
        if minute != self._minute:
            self._close_minute()
            self._minute = minute
        told = line.number(TOKENS if TOKENS in line.values else SAMPLES)
        if told is not None:
            self._told.append(told)
        elif line.took:
            self._steps += 1
            self._seconds += line.took
        return self._finding and self._finding._replace(step=line.step)

    def _close_minute(self) -> None:
        speed = mean(self._told) if self._told else self._steps / self._seconds if self._seconds else None
        self._told, self._steps, self._seconds = [], 0, 0.0
        if speed is not None:
            self._speeds.append(speed)
            self._finding = self._judge()

    def _judge(self) -> Finding | None:
        speeds = list(self._speeds)
        before, now = speeds[: -self._recent], speeds[-self._recent :]
        if len(before) < LEAST_BASELINE:
            return None
        usual = median(before)
        limit = self._limits.throughput * usual
        if sum(speed < limit for speed in now) < MOST * len(now) or median(now) >= limit:
            return None
        what = f"the run is at {median(now) / usual:.0%} of its own speed for {self._recent} minutes"
        return Finding("TrainingThroughputRegression", "ticket", what, median(now), limit, stays=STAYS)
