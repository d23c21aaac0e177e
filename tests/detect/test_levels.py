"""What a loss is compared with: after a warm restart, where it is rounded or nothing, and in a run's first steps."""

import math
import random
import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.detect.support import judged, kinds, lines, noisy, opened


def restarting(times: float, after: Callable[[int], float]) -> list[dict[str, Any]]:
    """A rate that begins anew at step 2000, so many times as high, and a loss that follows it, `after` that higher."""

    def share(step: int) -> float:
        return (1 + math.cos(math.pi * (step % 2000) / 2000)) / 2

    def loss(step: int) -> float:
        follows = 0.05 + 0.45 * share(step) * (1 - math.exp(-(step % 2000) / 15)) + 2 * math.exp(-step / 300)
        return follows if step < 2000 else follows + after(step - 2000)

    rate = {"learning_rate": lambda step: (0.1 if step < 2000 else 0.1 * times) * share(step) + 1e-6}
    return lines(3000, loss=noisy(loss, 0.01), **rate)


def test_a_warm_restart_brings_another_level() -> None:
    assert judged(restarting(1.0, lambda step: 0.0)) == []


@pytest.mark.parametrize("times", [1.0, 3.0])
def test_a_loss_that_runs_away_after_a_restart_is_a_page(times: float) -> None:
    found = kinds(judged(restarting(times, lambda step: min(12.0, 0.2 * step))))
    assert found >= {"TrainingLossSpike", "TrainingLossDiverging"}


def test_a_higher_rate_than_the_run_has_borne_excuses_nothing() -> None:
    assert kinds(judged(restarting(3.0, lambda step: 0.0))) >= {"TrainingLossSpike", "TrainingLossDiverging"}


def test_after_a_restart_the_new_level_counts() -> None:
    found = opened(judged(restarting(1.0, lambda step: 4.0 * (step >= 500))))
    assert ("TrainingLossSpike", "ticket", 2502) in found
    assert ("TrainingLossDiverging", "page", 2509) in found


def test_what_diverged_is_told_beside_the_level_that_it_was_compared_with() -> None:
    halving = noisy(lambda step: 8 * 0.5 ** (step / 400), 0.01)
    runs_off = judged(lines(1500, loss=lambda step: halving(step) * (5.8 if step >= 1200 else 1.0)))
    below = judged(lines(1500, loss=noisy(lambda step: -100.0 if step < 1200 else 60.0, 3.0)))
    page, other = (one.finding for one in runs_off + below if one.finding.kind == "TrainingLossDiverging")
    times, level = re.findall(r"([\d.]+) times its level of ([\d.]+)", page.what)[0]
    assert float(times) >= 5 and page.value / float(level) == pytest.approx(float(times), abs=0.06)
    assert re.search(r"10 sigmas or more above its level of -(99|100)", other.what)


@pytest.mark.parametrize("quantum", [1 / 32, 1e-4])
def test_a_loss_that_is_rounded_does_not_jump_by_a_quantum(quantum: float) -> None:
    coarse = noisy(lambda step: 30 * quantum * (1 + math.exp(-step / 500)), 0.6 * quantum)
    found = judged(lines(5000, loss=lambda step: round(coarse(step) / quantum) * quantum))
    assert "TrainingLossSpike" not in kinds(found)


def test_a_loss_that_is_mostly_nothing_jumps_when_it_is_another() -> None:
    sparse = random.Random(3)
    usual = [0.0 if sparse.random() < 0.8 else abs(sparse.gauss(0, 1)) for _ in range(5001)]
    assert "TrainingLossSpike" not in kinds(judged(lines(5000, loss=lambda step: usual[step])))
    jumps = judged(lines(3000, loss=lambda step: 9.0 if 2000 <= step < 2010 else usual[step]))
    assert ("TrainingLossSpike", "ticket", 2002) in opened(jumps)


@pytest.mark.parametrize("after", [1e-4, 0.3])
def test_what_was_nothing_from_the_start_has_no_noise_to_jump_out_of(after: float) -> None:
    assert judged(lines(300, loss=lambda step: after if step >= 100 and step % 3 else 0.0)) == []


@pytest.mark.parametrize(("at", "to", "found"), [
    (15, 50.0, {"TrainingLossSpike", "TrainingLossDiverging"}),
    (12, 25.0, {"TrainingLossSpike", "TrainingLossDiverging"}),
    (12, 15.0, set()),
    (6, 25.0, set()),
])  # fmt: skip
def test_a_jump_of_many_times_is_known_from_few_steps(at: int, to: float, found: set[str]) -> None:
    level = noisy(lambda step: 5 - 0.1 * step if step < at else to, 0.1)
    assert kinds(judged(lines(30, loss=level))) == found


def test_the_first_losses_may_fall_and_rise() -> None:
    for level in (lambda step: 40 * 0.6**step, lambda step: 2 + 0.4 * step, lambda step: 1e-9 * 3**step):
        assert judged(lines(19, loss=level)) == []
