"""Memory of GPUs and hosts: leaks, what is about to run out, and growth that ends by itself."""

import random
from collections.abc import Callable, Iterator
from typing import Any

from tests.detect.scenarios.node import H100, Node, beside
from tests.detect.scenarios.scenario import Build, Recording, Row, Scenario, family
from tests.detect.scenarios.shapes import Shape, training
from tests.detect.scenarios.timing import Pace, Restart
from tests.detect.scenarios.training import T0, Line, Training
from tests.detect.scenarios.truth import PAGE, TICKET, Allowed, Expected
from tests.detect.scenarios.watching import course, host, seen

DAY = Shape(2200, 10.0, 1, "language", 64.0)  # six hours
HOUR = Shape(3600, 1.0, 1, "language", 64.0)
TOTAL = H100.memory_mb
# The share of memory in use, by seconds since the start.
Share = Callable[[float], float]


def _allocator(run: Training, reserved: Share, allocated: Share | None = None) -> Any:
    """What the run's own allocator tells of it."""
    started = run.line.ends[0][0]

    def edit(step: int, rank: int, line: Line) -> None:
        since = run.line.ends[0][step - 1] - started
        line["memory_reserved_mb"] = round(TOTAL * reserved(since)) - 900.0
        line["memory_allocated_mb"] = round(TOTAL * (allocated or (lambda at: 0.9 * reserved(at)))(since)) - 900.0

    return edit


def using(
    seed: int, shape: Shape, share: Share, allocated: Share | None = None, tick: float = 30.0, **settings: Any
) -> tuple[Training, Node]:
    run = training(seed, shape=shape, **settings)
    run.edits = (_allocator(run, share, allocated),)
    node = beside(
        run,
        tick=tick,
        gpus=1,
        after=60.0,
        gpu_edits=(
            course("memory_used_mb", lambda since: float(round(TOTAL * share(since))), 0, last=run.ended - run.start),
        ),
    )
    return run, node


def growing(first: float, per_hour: float, begin: float = 0.0, end: float = 10.0**9) -> Share:
    return lambda since: first + per_hour * max(0.0, min(since, end) - begin) / 3600


# Hour by hour a bit more, with nothing that would take it back: tonight it ends with out of memory.
def gpu_leak(first: float, per_hour: float) -> Build:
    def build(seed: int, rng: random.Random) -> Recording:
        run, node = using(seed, DAY, growing(first, per_hour, begin=1200.0 * (seed % 2)))
        return Recording(
            (run,), (node,), (seen("GpuMemoryLeak", TICKET, run.start, 1200.0 * (seed % 2), 4.5 * 3600, 0),)
        )

    return build


# It fills in the first minutes, breathes with the length of sequences, or grows for an evaluation and shrinks again.
def gpu_growth_that_ends(seed: int, rng: random.Random) -> Recording:
    shares: tuple[Share, ...] = (
        growing(0.3, 0.7, end=1300.0),
        lambda since: 0.7 + 0.06 * random.Random(f"{seed}/{since // 90}").random(),
        lambda since: 0.62 + (0.15 if since % 7200 > 6500 else 0.0),
        lambda since: 0.58 if since < 9000 else 0.71,
    )
    run, node = using(seed, DAY, shares[seed % 4])
    return Recording((run,), (node,))


# Half an hour, no more: whoever gets up now can still save a checkpoint.
def soon_full(first: float, per_minute: float, until: float) -> Build:
    """Where nothing stops it the run ends with it."""

    def build(seed: int, rng: random.Random) -> Recording:
        begin = 1500.0
        share = growing(first, 60 * per_minute, begin, begin + 60 * (until - first) / per_minute)
        steps = HOUR.steps if until < 0.97 else int(begin - 20 + 60 * (until - first) / per_minute)
        end = {"end": "crashed", "error": "OutOfMemoryError: CUDA out of memory"} if until >= 0.97 else {}
        run, node = using(seed, HOUR, share, tick=5.0, steps=steps, **end)
        critical = max(0.0, (1 - first) / per_minute - 30) * 60
        expected = [seen("GpuOutOfMemorySoon", PAGE, run.start, begin, critical + 720.0, 0)]
        if end:
            expected.append(Expected("TrainingCrashed", PAGE, run.ended, 10.0, run.run))
        return Recording((run,), (node,), tuple(expected), (Allowed("GpuMemoryLeak"), Allowed("GpuMemoryHigh")))

    return build


# Nearly full, and half of it in fragments that nobody can use, more of them with each minute.
def fragments(seed: int, rng: random.Random) -> Recording:
    run, node = using(seed, HOUR, growing(0.72, 0.36, 900.0, 2900.0), lambda since: 0.42, tick=5.0)
    expected = seen("GpuOutOfMemorySoon", PAGE, run.start, 900.0, 2400.0, 0)
    return Recording((run,), (node,), (expected,), (Allowed("GpuMemoryLeak"), Allowed("GpuMemoryHigh")))


# Frameworks that take all at the start, and a warm-up that is steep but short.
def full_but_steady(seed: int, rng: random.Random) -> Recording:
    if seed % 2:
        run, node = using(seed, HOUR, growing(0.2, 9.0, 30.0, 230.0), tick=5.0)
        return Recording((run,), (node,))
    run, node = using(seed, HOUR, lambda since: 0.955, tick=5.0)
    return Recording((run,), (node,), (seen("GpuMemoryHigh", TICKET, run.start, 0.0, 1800.0, 0),))


# Over nine tenths is what was asked to be told of.
def gpu_high(share: float, is_high: bool) -> Build:
    def build(seed: int, rng: random.Random) -> Recording:
        gpu, begin = seed % 3, 600.0 * (seed % 2)
        edit = course("memory_used_mb", lambda since: float(round(TOTAL * share)), gpu, first=begin)
        node = Node(gpus=3, seconds=3600, tick=5.0, seed=seed, gpu_edits=(edit,))
        expected = (seen("GpuMemoryHigh", TICKET, T0, begin, 1500.0, gpu),) if is_high else ()
        return Recording(nodes=(node,), expected=expected)

    return build


def _host_memory(seed: int, used: Share, **settings: Any) -> tuple[Training, Node]:
    run = training(seed, shape=DAY, **settings)
    jitter = random.Random(f"host-memory/{seed}")
    free = host(
        "memory_available_bytes", lambda since: round((1 - used(since) + jitter.gauss(0, 0.002)) * 512 * 2.0**30)
    )
    return run, beside(run, tick=30.0, gpus=1, after=60.0, host_edits=(free,))


# The kernel will kill the run, most likely at night.
def host_leak(first: float, per_hour: float) -> Build:
    def build(seed: int, rng: random.Random) -> Recording:
        begin = 1800.0 * (seed % 2)
        run, node = _host_memory(seed, growing(first, per_hour, begin))
        return Recording((run,), (node,), (seen("HostMemoryLeak", TICKET, run.start, begin, 4.5 * 3600),))

    return build


# Data that is read once and then there, caches that are emptied, a short-lived helper.
def host_growth_that_ends(seed: int, rng: random.Random) -> Recording:
    used: tuple[Share, ...] = (
        growing(0.2, 0.9, end=1500.0),
        lambda since: 0.35 + 0.08 * (since % 3600) / 3600,
        lambda since: 0.4 + (0.2 if 8000 < since < 9500 else 0.0),
        lambda since: 0.46,
    )
    run, node = _host_memory(seed, used[seed % 4])
    return Recording((run,), (node,))


TWO_LIVES: dict[str, Any] = {"steps": 2700, "pace": Pace(restarts=(Restart(1300, 1250, 600.0),))}
LIFE_SECONDS, REST_SECONDS = 13_000.0, 600.0


def in_each_life(first: float, per_hour: float, rest: float) -> Share:
    """From the same level again, once it was started anew; between the two nobody holds anything."""

    def share(since: float) -> float:
        life = since if since < LIFE_SECONDS + 30 else since - LIFE_SECONDS - REST_SECONDS
        return first + per_hour * life / 3600 if life > 0 else rest

    return share


# A leak ended the run, somebody resumed it as it was, and it leaks again.
def gpu_leak_resumed(seed: int, rng: random.Random) -> Recording:
    run, node = using(seed, DAY, in_each_life(0.5, 0.1, 0.006), **TWO_LIVES)
    lives = (seen("GpuMemoryLeak", TICKET, run.start, since, 2 * 3600, 0)
             for since in (0.0, LIFE_SECONDS + REST_SECONDS))  # fmt: skip
    return Recording((run,), (node,), tuple(lives))


def host_leak_resumed(seed: int, rng: random.Random) -> Recording:
    run, node = _host_memory(seed, in_each_life(0.3, 0.1, 0.2), **TWO_LIVES)
    lives = (seen("HostMemoryLeak", TICKET, run.start, since, 2 * 3600)
             for since in (0.0, LIFE_SECONDS + REST_SECONDS))  # fmt: skip
    return Recording((run,), (node,), tuple(lives))


def scenarios() -> Iterator[Scenario]:
    yield from family(
        "memory-leak",
        "GpuMemoryLeak",
        (
            Row("clear", "half-a-day", gpu_leak(0.5, 0.045), times=4),
            Row("clear", "resumed", gpu_leak_resumed, times=2),
            Row("faint", "a-day", gpu_leak(0.5, 0.026), times=4),
            Row("near", "ends-by-itself", gpu_growth_that_ends, times=4),
        ),
    )
    yield from family(
        "memory-leak",
        "HostMemoryLeak",
        (
            Row("clear", "half-a-day", host_leak(0.34, 0.06), times=4),
            Row("clear", "resumed", host_leak_resumed, times=2),
            Row("faint", "a-day", host_leak(0.36, 0.034), times=4),
            Row("near", "ends-by-itself", host_growth_that_ends, times=4),
        ),
    )
    yield from family(
        "memory-full",
        "GpuOutOfMemorySoon",
        (
            Row("clear", "until-it-ends", soon_full(0.55, 0.015, 0.99), times=4),
            Row("clear", "fragments", fragments, times=2),
            Row("faint", "stops-in-time", soon_full(0.62, 0.009, 0.885), times=4),
            Row("near", "full-but-steady", full_but_steady, times=4),
        ),
    )
    yield from family(
        "memory-full",
        "GpuMemoryHigh",
        (
            Row("clear", "full", gpu_high(0.965, True), times=4),
            Row("faint", "just-over", gpu_high(0.915, True), times=4),
            Row("near", "just-under", gpu_high(0.888, False), times=4),
        ),
    )
