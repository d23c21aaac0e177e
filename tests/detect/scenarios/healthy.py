"""Runs and nodes with which nothing is wrong, in as many shapes as there are: whatever is said of them is false."""

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from tests.detect.scenarios import curves
from tests.detect.scenarios.curves import settling
from tests.detect.scenarios.host import disk
from tests.detect.scenarios.node import A100, H100, RTX, T4, HostEdit, Node, beside
from tests.detect.scenarios.scenario import Recording, Row, Scenario, family
from tests.detect.scenarios.shapes import SHAPES, Shape, training
from tests.detect.scenarios.speed import every
from tests.detect.scenarios.timing import Pace, Pause, Restart
from tests.detect.scenarios.training import T0, Training
from tests.detect.scenarios.truth import Allowed
from tests.detect.scenarios.watching import host, put

HOUR = Shape(3000, 1.1, 2, "language", 128.0)


def plain(seed: int, rng: random.Random) -> Recording:
    return Recording((training(seed, shape=seed % len(SHAPES)),))


def bare(seed: int, rng: random.Random) -> Recording:
    """Training files somebody copied, nothing else."""
    return Recording((training(seed, shape=(0, 1, 3, 4, 5, 7)[seed % 6]),), bare=True)


def beside_gpus(seed: int, rng: random.Random) -> Recording:
    shape = (SHAPES[0], Shape(240, 8.0, 8, "language", 1024.0), Shape(1000, 0.7, 1, "vision", 64.0), HOUR)[seed % 4]
    run = training(seed, shape=shape)
    models = (H100, A100, RTX, T4)
    return Recording(
        (run,), (beside(run, tick=(1.0, 5.0, 2.0, 5.0)[seed % 4], model=models[seed // 2 % 4], after=120.0),)
    )


def resumed(seed: int, rng: random.Random) -> Recording:
    """Preempted once or twice, and on from the last checkpoint: steps are done again, the first ones of each life are
    slow, and the loader is only being started."""
    shape = (HOUR, SHAPES[0], SHAPES[2], SHAPES[1])[seed % 4]
    at = shape.steps // 2
    restarts = Restart(at, at - at % 50 - 50), Restart(at + at // 2, at, seconds=900.0)
    pace = Pace(restarts=restarts[: 1 + seed % 2], warm_up=8.0, first_batch=5.0)
    run = training(seed, shape=shape, pace=pace)
    nodes = (beside(run, tick=10.0, gpus=min(2, run.ranks)),) if seed % 3 == 0 else ()
    return Recording((run,), nodes)


def with_rhythm(seed: int, rng: random.Random) -> Recording:
    steps, factor = ((5, 1.8), (10, 2.5), (100, 5.0), (2, 1.5), (50, 4.0))[seed % 5]
    return Recording((training(seed, shape=(0, 1, 3, 4)[seed % 4], pace=Pace(rhythm=every(steps, factor))),))


def evaluates_and_saves(seed: int, rng: random.Random) -> Recording:
    """Announced, each some hundred steps; saving takes longer where storage is slow."""
    shape = (HOUR, SHAPES[0], Shape(900, 5.0, 8, "language", 512.0))[seed % 3]
    pauses = tuple(
        Pause(step, (90.0, 25.0, 300.0)[seed % 3] * rng.uniform(0.9, 1.2), ("evaluation", "checkpoint")[number % 2])
        for number, step in enumerate(range(200, shape.steps, 200))
    )
    run = training(seed, shape=shape, pace=Pace(pauses=pauses))
    nodes = (beside(run, tick=10.0, gpus=1),) if seed % 2 else ()
    return Recording((run,), nodes)


def pauses_unsaid(seed: int, rng: random.Random) -> Recording:
    """A plain loop that evaluates each 250 steps and tells nobody."""
    shape = (HOUR, SHAPES[0])[seed % 2]
    pauses = tuple(Pause(step, 35.0) for step in range(250, shape.steps, 250))
    return Recording((training(seed, shape=shape, pace=Pace(pauses=pauses)),))


def curriculum(seed: int, rng: random.Random) -> Recording:
    """Harder data from a step on lifts the loss, and it falls on from there: told of as a spike it is a true word."""
    run = training(seed, shape=(0, 3, 8)[seed % 3])
    at = run.steps // 2
    run.curve = curves.lifted(run.curve, at, 0.5 if seed % 2 else -0.5)
    lifted = tuple(map(Allowed, ("TrainingLossSpike", "TrainingLossNotDecreasing", "TrainingLossPlateau")))
    return Recording((run,), allowed=lifted if seed % 2 else ())


def seldom_told(seed: int, rng: random.Random) -> Recording:
    """The loss each tenth or fiftieth step, the time of each."""
    shape = (0, 1, 3)[seed % 3]
    return Recording((training(seed, shape=shape, loss_every=(10, 50, 25)[seed % 3], all_ranks_tell=seed % 2 == 0),))


def little_told(seed: int, rng: random.Random) -> Recording:
    """A loss and nothing else; or times and no loss."""
    run = training(seed, shape=(0, 1, 3, 5)[seed % 4], norm=None, has_times=seed % 2 == 0)

    def edit(step: int, rank: int, line: dict[str, Any]) -> None:
        line.pop("learning_rate", None)
        if seed % 4 == 2:
            line.pop("loss", None)

    run.edits = (edit,)
    return Recording((run,))


def very_short(seed: int, rng: random.Random) -> Recording:
    shape = Shape(
        (5, 12, 25, 3, 60, 1)[seed % 6], (2.0, 0.5, 10.0, 60.0, 1.0, 1.0)[seed % 6], 1 + seed % 2, "tuning", 8.0
    )
    return Recording((training(seed, shape=shape),))


def loud(seed: int, rng: random.Random) -> Recording:
    """Small batches, heavy tails, gradients that jump about below ten."""
    run = training(seed, shape=(3, 0, 8)[seed % 3], norm=settling(1.1, first=3.0, share=0.45))
    before = run.norm
    run.noise = (curves.heavy_tailed(0.05), curves.gaussian(0.2), curves.relative(0.06))[seed % 3]
    run.norm = lambda draw, step: min(9.2, before(draw, step)) if before else 0.0
    return Recording((run,))


def policy(seed: int, rng: random.Random) -> Recording:
    """A policy's loss wanders around zero by nature: that it does not fall is what was asked to be told of."""
    run = training(seed, shape=4, curve=lambda step: 0.01, noise=curves.gaussian(0.02), norm=settling(0.4))
    return Recording((run,), allowed=(Allowed("TrainingLossNotDecreasing"), Allowed("TrainingLossPlateau")))


def warm_restarts(seed: int, rng: random.Random) -> Recording:
    """The rate falls to a hundredth and begins anew, at once or as evenly as it fell: the loss rises a little with it,
    and goes on falling."""
    run = training(seed, shape=(0, 1, 3)[seed % 3])
    period, before = run.steps // (3 + seed % 3), run.curve
    cycle = curves.cosine(3e-4, period, last=3e-6)
    run.rate = lambda step: cycle(step % period if seed % 4 < 3 else abs(2 * (step % period) - period))

    def follows(step: int) -> float:
        """The loss takes some dozens of steps."""
        return sum(run.rate(max(1, step - back)) for back in range(0, 60, 10)) / 6 / 3e-4

    run.curve = lambda step: before(step) * (1 + 0.08 * follows(step))
    return Recording((run,))


def several_runs(seed: int, rng: random.Random) -> Recording:
    """One after another on the same card, each with another loss."""
    runs: list[Training] = []
    for number in range(3):
        start = runs[-1].ended + 90.0 if runs else T0
        runs.append(
            training(
                seed + number,
                shape=Shape(700, 0.6, 1, ("language", "vision", "tuning")[number], 32.0),
                run=f"sweep-{number}",
                start=start,
            )
        )
    span = runs[-1].ended - T0 + 60
    node = Node(
        gpus=1,
        seconds=span,
        tick=5.0,
        seed=seed,
        busy=lambda when: any(run.is_busy(when) for run in runs),
        held=lambda when: any(run.start <= when <= run.ended for run in runs),
    )
    return Recording(tuple(runs), (node,))


def node_alone(seed: int, rng: random.Random) -> Recording:
    """GPUs at work for somebody who tells nothing, capped in power, empty, or on another clock."""
    model = (H100, A100, RTX, T4)[seed % 4]
    kinds: tuple[Callable[[], Node], ...] = (
        lambda: Node(gpus=8, seconds=900, tick=2.0, seed=seed, model=model),
        lambda: Node(
            gpus=2,
            seconds=7200,
            tick=10.0,
            seed=seed,
            model=model,
            gpu_edits=(put("throttle_active", ["sw_power_cap"], -1),),
        ),
        lambda: Node(gpus=4, seconds=14400, tick=30.0, seed=seed, busy=lambda when: False, held=lambda when: False),
        lambda: Node(
            gpus=1,
            seconds=86400,
            tick=60.0,
            seed=seed,
            model=model,
            busy=lambda when: when % 7200 < 6000,
            held=lambda when: when % 7200 < 6000,
        ),
    )
    return Recording(nodes=(kinds[seed // 2 % 4](),))


def two_nodes(seed: int, rng: random.Random) -> Recording:
    """Each has counters as old as its last boot, and disks of its own under the same names."""

    def counts(number: int) -> tuple[HostEdit, ...]:
        names = "oom_kills_total", "journal_read_errors_total", "swap_bytes_total_in", "swap_bytes_total_out"
        return (*(host(name, lambda since: 1e9 * number) for name in names), disk(lambda since: 0.7 - 0.25 * number))

    nodes = tuple(Node(host=f"node-{letter}", gpus=2, seconds=7200, tick=10.0, seed=seed + number,
                       host_edits=counts(number)) for number, letter in enumerate("abc"[: 2 + seed % 2]))  # fmt: skip
    if seed % 2:
        return Recording(nodes=nodes)
    run = training(seed, shape=Shape(3600, 2.0, 16, "language", 512.0))
    return Recording((run,), nodes)


def for_days(seed: int, rng: random.Random) -> Recording:
    """Three days at a step a minute, saved every two hours, on lines a minute apart."""
    pauses = tuple(Pause(step, 100.0, "checkpoint") for step in range(120, 4300, 120))
    run = training(seed, shape=Shape(4300, 60.0, 1, "language", 8192.0), pace=replace(Pace(pauses=pauses), jitter=0.03))
    return Recording((run,), (beside(run, tick=60.0, gpus=1),))


def scenarios() -> Iterator[Scenario]:
    yield from family("healthy: plain", "", (Row("healthy", "plain", plain, times=27),))
    yield from family("healthy: files alone", "", (Row("healthy", "bare", bare, times=6),))
    yield from family("healthy: beside GPUs", "", (Row("healthy", "gpus", beside_gpus, times=12),))
    yield from family("healthy: resumed", "", (Row("healthy", "resumed", resumed, times=8),))
    yield from family(
        "healthy: pauses",
        "",
        (
            Row("healthy", "rhythm", with_rhythm, times=10),
            Row("healthy", "announced", evaluates_and_saves, times=9),
            Row("healthy", "unsaid", pauses_unsaid, times=4),
        ),
    )
    yield from family(
        "healthy: data and schedules",
        "",
        (
            Row("healthy", "curriculum", curriculum, times=6),
            Row("healthy", "warm-restarts", warm_restarts, times=8),
            Row("healthy", "loud", loud, times=6),
            Row("healthy", "policy", policy, times=4),
        ),
    )
    yield from family(
        "healthy: little told",
        "",
        (
            Row("healthy", "seldom", seldom_told, times=6),
            Row("healthy", "little", little_told, times=6),
            Row("healthy", "very-short", very_short, times=8),
        ),
    )
    yield from family(
        "healthy: nodes",
        "",
        (
            Row("healthy", "alone", node_alone, times=8),
            Row("healthy", "several-runs", several_runs, times=3),
            Row("healthy", "two-nodes", two_nodes, times=4),
            Row("healthy", "days", for_days, times=2),
        ),
    )
