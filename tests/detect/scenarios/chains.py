"""One fault with several signs: one message, and the rest as its evidence."""

import math
import random
from collections.abc import Iterator
from typing import Any

from tests.detect.scenarios.gpu_faults import FATAL
from tests.detect.scenarios.heat import degrees
from tests.detect.scenarios.node import H100, GpuEdit, beside
from tests.detect.scenarios.progress import hanging
from tests.detect.scenarios.scenario import Recording, Row, Scenario, family
from tests.detect.scenarios.shapes import Shape, training
from tests.detect.scenarios.speed import starving
from tests.detect.scenarios.straggling import forward_for
from tests.detect.scenarios.timing import Pace, Stretch
from tests.detect.scenarios.training import Line, Training, uuid
from tests.detect.scenarios.truth import PAGE, TICKET, Allowed, Expected
from tests.detect.scenarios.watching import put, seen

TEAM = Shape(900, 1.0, 4, "language", 256.0)
# By themselves these would wake somebody a second time for the same card.
EVIDENCE = tuple(
    Allowed(kind, folded=True)
    for kind in (
        "GpuMissing",
        "TrainingStalled",
        "TrainingHangSuspected",
        "TrainingCrashed",
        "GpuNvlinkDown",
        "GpuRecoveryActionNeeded",
        "GpuEccUncorrectable",
        "GpuRowRemapPending",
        "GpuXidFatal",
        "GpuXidWarning",
    )
)
OTHERS = (Allowed("TrainingStepTimeOutlier"), Allowed("GpuIdleAllocated"))


def _xid(gpu: int, code: int) -> dict[str, Any]:
    return {"event": "xid", "gpu": str(gpu), "uuid": uuid("node-a", gpu), "xid": code}


def _until_somebody_ends_it(seed: int, seconds: float) -> tuple[Training, float]:
    """Stands still after 540 steps, of 900, and is ended by hand."""
    run = training(seed, shape=TEAM, steps=540, planned=TEAM.steps, end="preempted", end_after=seconds)
    return run, run.line.last - run.start


# The card falls off the bus, its ranks' peers spin in their collective, the run stands still: one page, for the card.
def off_the_bus(seed: int, rng: random.Random) -> Recording:
    gpu = rng.randrange(4)
    run, begin = _until_somebody_ends_it(seed, 1100.0)
    node = beside(
        run,
        tick=1.0,
        gpu_edits=(hanging(begin, begin + 1100, 105.0),),
        events=((begin + 0.4, _xid(gpu, 79)),),
        silent=lambda since, index: index == gpu and since >= begin + 0.5,
    )
    expected = seen("GpuXidFatal", PAGE, run.start, begin, 10.0, gpu)
    return Recording((run,), (node,), (expected,), (*EVIDENCE, *OTHERS))


# A cell of memory is gone: Xid 48, then the counters, a row that waits to be remapped, the driver asks for a reset.
def bad_memory(seed: int, rng: random.Random) -> Recording:
    gpu, begin = rng.randrange(4), 400.0
    run = training(seed, shape=TEAM)
    edits: tuple[GpuEdit, ...] = tuple(
        put(name, 1.0, gpu, first=begin + 8)
        for name in (
            "ecc_volatile_errors_total_uncorrected",
            "remapped_rows_uncorrected",
            "remapped_rows_pending",
            "recovery_action",
        )
    )
    node = beside(run, tick=2.0, gpu_edits=edits, events=((begin, _xid(gpu, 48)), (begin + 0.2, _xid(gpu, 63))))
    expected = seen("GpuXidFatal", PAGE, run.start, begin, 10.0, gpu)
    return Recording((run,), (node,), (expected,), EVIDENCE)


# A link breaks, the collective never ends.
def broken_link(seed: int, rng: random.Random) -> Recording:
    gpu = rng.randrange(4)
    run, begin = _until_somebody_ends_it(seed, 500.0)
    edits = hanging(begin, begin + 500, 110.0), put("nvlink_links_active", 17.0, gpu, first=begin + 6)
    node = beside(run, tick=2.0, gpu_edits=edits, events=((begin + 0.3, _xid(gpu, 74)),))
    expected = seen("GpuXidFatal", PAGE, run.start, begin, 10.0, gpu)
    return Recording((run,), (node,), (expected,), (*EVIDENCE, *OTHERS))


# A fatal Xid, and the run crashes a moment later because of it.
def crash_by_card(seed: int, rng: random.Random) -> Recording:
    gpu, code = rng.randrange(4), rng.choice(FATAL)
    run = training(
        seed,
        shape=TEAM,
        steps=600,
        end="crashed",
        end_rank=gpu,
        end_after=4.0,
        error="RuntimeError: CUDA error: uncorrectable ECC error encountered",
    )
    begin = run.line.last - run.start + 0.5
    node = beside(run, tick=2.0, after=120.0, events=((begin, _xid(gpu, code)),))
    expected = seen("GpuXidFatal", PAGE, run.start, begin, 10.0, gpu)
    return Recording((run,), (node,), (expected,), EVIDENCE)


# Hot, slowed down, and so the last in each step: the card and its rank are named.
def hot_straggler(seed: int, rng: random.Random) -> Recording:
    gpu = rng.randrange(4)
    stretch = Stretch(590, 10**9, forward_for(1.6), "forward", (gpu,))
    run = training(seed, shape=TEAM, steps=1500, pace=Pace(stretches=(stretch,)))
    held = put("throttle_active", ["hw_slowdown", "hw_thermal_slowdown"], gpu, first=600.0)
    node = beside(run, tick=2.0, gpu_edits=(degrees(rng, H100.slowdown + 1, gpu), held))
    at = run.at(590)
    expected = (
        seen("GpuThermalMargin", PAGE, run.start, 600.0, 300.0, gpu),
        seen("GpuTemperatureHigh", TICKET, run.start, 600.0, 1200.0, gpu),
        Expected("TrainingStraggler", PAGE, at, 220.0, run.run, gpu, step=590),
    )
    also = (
        Allowed("GpuHardwareSlowdown", gpu=gpu),
        Allowed("TrainingThroughputRegression"),
        Allowed("TrainingStepTimeOutlier"),
    )
    return Recording((run,), (node,), expected, also)


# The kernel ends the trainer for want of memory: one page, whichever of the two is seen first.
def out_of_host_memory(seed: int, rng: random.Random) -> Recording:
    run = training(seed, shape=TEAM, steps=600, end="killed", end_rank=rng.randrange(4))
    begin = run.ended - run.start + (-4.0 if seed % 2 else 4.0)

    def host_edit(since: float, values: dict[str, Any]) -> None:
        values["oom_kills_total"] = 1.0 if since >= begin else 0.0

    node = beside(run, tick=2.0, after=120.0, host_edits=(host_edit,))
    if seed % 2:
        expected = seen("HostOomKill", PAGE, run.start, begin, 60.0)
        return Recording((run,), (node,), (expected,), (Allowed("TrainingKilled", folded=True),))
    expected = Expected("TrainingKilled", PAGE, run.ended, 30.0, run.run)
    return Recording((run,), (node,), (expected,), (Allowed("HostOomKill", folded=True),))


# Gradients explode, the loss follows, then it is NaN: whichever comes first wakes somebody, the last one must be told.
def blows_up(seed: int, rng: random.Random) -> Recording:
    run = training(seed, shape=Shape(2000, 0.5, 1, "language", 64.0))
    at = 1400

    def edit(step: int, rank: int, line: Line) -> None:
        if step >= at:
            line["gradient_norm"] = 40.0 * 1.4 ** min(40, step - at)
            line["loss"] += 0.5 * 1.15 ** min(60, step - at)
        if step >= at + 60:
            line["loss"] = line["gradient_norm"] = math.nan

    run.edits = (edit,)
    expected = (
        Expected("TrainingNonFinite", PAGE, run.at(at + 60), 10.0, run.run, step=at + 60),
        Expected("TrainingGradientExplosion", PAGE, run.at(at), 30.0, run.run, step=at),
    )
    also = tuple(map(Allowed, ("TrainingLossSpike", "TrainingLossDiverging", "TrainingGradientNormHigh")))
    return Recording((run,), expected=expected, allowed=also)


# The loader starves the run: that it is slower by that is no second ticket.
def starved_and_slow(seed: int, rng: random.Random) -> Recording:
    shape = Shape(4000, 1.0, 1, "language", 64.0)
    pace = Pace(stretches=(Stretch(2000, 10**9, starving(0.45).factor, "data_wait"),))
    run = training(seed, shape=shape, pace=pace)
    expected = Expected("TrainingDataStarved", PAGE, run.at(2000), 1500.0, run.run, step=2000)
    also = (Allowed("TrainingThroughputRegression", folded=True), Allowed("TrainingStepTimeOutlier"))
    return Recording((run,), expected=(expected,), allowed=also)


def scenarios() -> Iterator[Scenario]:
    yield from family(
        "chain",
        "",
        tuple(
            Row("chain", what, build, times=3)
            for what, build in (
                ("off-the-bus", off_the_bus),
                ("bad-memory", bad_memory),
                ("broken-link", broken_link),
                ("crash-by-card", crash_by_card),
                ("hot-straggler", hot_straggler),
                ("out-of-host-memory", out_of_host_memory),
                ("blows-up", blows_up),
                ("starved-and-slow", starved_and_slow),
            )
        ),
    )
