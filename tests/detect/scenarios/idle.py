"""GPUs that are held and not used, and those that somebody else uses too."""

import random
from collections.abc import Iterator
from typing import Any

from tests.detect.scenarios.node import A100, H100, GpuEdit, Node, beside
from tests.detect.scenarios.scenario import Build, Recording, Row, Scenario, family
from tests.detect.scenarios.shapes import Shape, training
from tests.detect.scenarios.training import T0, Training
from tests.detect.scenarios.truth import INFO, TICKET, Allowed
from tests.detect.scenarios.watching import seen

BUSY = 900.0


# A notebook that somebody left open holds what others wait for, at dollars an hour.
def idle(minutes: float, share: float, is_told: bool) -> Build:
    """Busy for a quarter of an hour, then nothing but the memory."""

    def build(seed: int, rng: random.Random) -> Recording:
        last = BUSY + 60 * minutes

        def busy(when: float) -> bool:
            return not BUSY <= when - T0 < last

        node = Node(
            gpus=2,
            seconds=last + 300,
            tick=10.0,
            seed=seed,
            model=(H100, A100)[seed % 2],
            busy=busy,
            memory_share=share,
        )
        expected = seen("GpuIdleAllocated", TICKET, T0, BUSY, min(60 * minutes, 2700.0))
        # Both GPUs are idle: one finding each, the first is asked for.
        return Recording(
            nodes=(node,), expected=(expected,) if is_told else (), allowed=(Allowed("GpuIdleAllocated"),) * is_told
        )

    return build


# Nothing held, a few per cent of use, a request now and then: nobody else could have had it.
def idle_for_a_reason(seed: int, rng: random.Random) -> Recording:
    def serving(when: float) -> bool:
        return (when - T0) % 600 < 30

    settings: tuple[dict[str, Any], ...] = (
        {"busy": lambda when: False, "held": lambda when: False},
        {"busy": serving, "memory_share": 0.8},
        {"busy": lambda when: False, "gpu_edits": (_eight_per_cent,)},
    )
    return Recording(nodes=(Node(gpus=2, seconds=7200, tick=10.0, seed=seed, **settings[seed % 3]),))


def _eight_per_cent(since: float, gpu: int, values: dict[str, Any]) -> None:
    values["utilization_percent"] = 7.0 + since % 30 // 10


SHARED = Shape(1800, 1.0, 4, "language", 512.0)


def _others(run: Training, gpu: int, megabytes: float, first: float, last: float) -> GpuEdit:
    def edit(since: float, index: int, values: dict[str, Any]) -> None:
        if index == gpu and first <= since <= last:
            values["compute_processes"] += 1
            values["memory_used_mb"] += megabytes
            values["compute_processes_memory_bytes"] += megabytes * 2**20

    return edit


# Somebody else's process on a card of the run: good to know when the steps become uneven.
def shared(megabytes: float, minutes: float) -> Build:
    def build(seed: int, rng: random.Random) -> Recording:
        run, gpu = training(seed, shape=SHARED), rng.randrange(4)
        node = beside(run, tick=5.0, gpu_edits=(_others(run, gpu, megabytes, 400.0, 400.0 + 60 * minutes),))
        return Recording((run,), (node,), (seen("GpuSharedByOthers", INFO, run.start, 400.0, 900.0, gpu),))

    return build


# Two ranks of one run on a card, or two processes on a card that no run claims.
def shared_by_oneself(seed: int, rng: random.Random) -> Recording:
    run = training(seed, shape=SHARED)
    if seed % 2:
        node = beside(run, tick=5.0, gpus=6, gpu_edits=(_others(run, 5, 4000.0, 300.0, 1500.0),))
    else:
        node = beside(run, tick=5.0)
    return Recording((run,), (node,))


def scenarios() -> Iterator[Scenario]:
    yield from family(
        "idle",
        "GpuIdleAllocated",
        (
            Row("clear", "two-hours", idle(120, 0.6, True), times=4),
            Row("faint", "forty-minutes", idle(40, 0.3, True), times=4),
            Row("near", "twenty-five-minutes", idle(25, 0.6, False), times=3),
            Row("near", "for-a-reason", idle_for_a_reason, times=3),
        ),
    )
    yield from family(
        "shared",
        "GpuSharedByOthers",
        (
            Row("clear", "for-long", shared(6000.0, 20.0), times=4),
            Row("faint", "small", shared(500.0, 10.0), times=4),
            Row("near", "by-oneself", shared_by_oneself, times=4),
        ),
    )
