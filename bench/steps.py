"""What the SDK takes of a training step: all its calls beside real work, and the clockwork alone."""

import gc
import hashlib
import time
from collections.abc import Callable, Iterator
from itertools import islice, repeat

import trainvitals
from bench.loggers import FIELDS
from bench.rows import Row, Section, median, quantile
from bench.stage import Stage
from trainvitals.run.run import Run

STEP_SECONDS = 0.010
SHARE_GOAL, CLOCKWORK_GOAL = 0.001, 1.5e-6
BLOCK = 2000
WARM_UP = 20
PHASES = ("forward", "backward", "optimizer")
clock = time.perf_counter


def measure(stage: Stage) -> Section:
    with trainvitals.start("steps", dir=stage.folder / "steps") as run:
        work = _work()
        steps = stage.few_or(20, 600)
        plain = list(islice(_steps(run, work), WARM_UP, WARM_UP + steps))
        phased = list(islice(_steps(run, work, PHASES), WARM_UP, WARM_UP + steps))
        clockwork = min(_clockwork(run) for _ in range(stage.few_or(3, 30)))
    rows = [_share(plain, "data, step, log", f"≤ {SHARE_GOAL:.1%}"), _share(phased, "these and three phases"),
            Row("run.step() and run.data(), a step", clockwork, unit="µs", goal="≤ 1.5 µs",
                met=clockwork <= CLOCKWORK_GOAL, samples=f"best of blocks of {BLOCK:,}")]  # fmt: skip
    return Section("A step's calls", rows, [NOTE])


NOTE = (
    f"A step is {STEP_SECONDS * 1e3:g} ms of hashing, so that caches hold other things when the next call comes; the "
    "time of every call of the step is added up, and the medians of steps are shown as seconds and as a share of the "
    "step. The clockwork is measured without the line that it writes where no `log` follows."
)


def _share(spent: list[float], calls: str, goal: str = "") -> Row:
    share = median(spent) / STEP_SECONDS
    tail = f"{share:.3%} of the step; p99 {quantile(spent, 0.99) * 1e6:.0f} µs; {len(spent)} steps"
    return Row(f"all calls of a step: {calls}", median(spent), unit="µs", goal=goal,
               met=share <= SHARE_GOAL if goal else None, samples=tail)  # fmt: skip


def _work() -> Callable[[float], None]:
    """Work that takes a given time, made of pieces of about 0.2 ms."""
    piece = bytes(300_000)

    def work(seconds: float) -> None:
        end = clock() + seconds
        while clock() < end:
            hashlib.sha256(piece).digest()

    return work


def _steps(run: Run, work: Callable[[float], None], phases: tuple[str, ...] = ()) -> Iterator[float]:
    """Seconds in calls of ours, of one step after another."""
    batches = iter(run.data(repeat(None)))
    while True:
        spent, began = 0.0, clock()
        next(batches)
        step = run.step()
        step.__enter__()
        spent += clock() - began
        spent += sum([_phase(run, name, work, STEP_SECONDS / len(phases)) for name in phases])
        if not phases:
            work(STEP_SECONDS)
        began = clock()
        step.__exit__(None, None, None)
        run.log(FIELDS)
        yield spent + clock() - began


def _phase(run: Run, name: str, work: Callable[[float], None], seconds: float) -> float:
    began = clock()
    phase = run.phase(name)
    phase.__enter__()
    spent = clock() - began
    work(seconds)
    began = clock()
    phase.__exit__(None, None, None)
    return spent + clock() - began


def _clockwork(run: Run) -> float:
    """Each step's times are thrown away in the place of being written."""
    gc.collect()
    ended = run._timer.ended
    began = clock()
    for _ in run.data(range(BLOCK)):
        with run.step():
            pass
        ended.clear()
    return (clock() - began) / BLOCK
