"""What a run learns: loss, gradients, learning rate, each where it is bad, nearly so, and in good health."""

import math

import pytest

from tests.detect.support import BEGAN, judged, kinds, line, lines, noisy, opened, with_ticks
from trainvitals.detect.engine import Engine
from trainvitals.detect.loss_spike import ACCEPTED_STEPS
from trainvitals.detect.loss_trend import Blocks

NAN, INF = math.nan, math.inf


def falling(step: int) -> float:
    return 2.5 + 6 * 0.998**step


def test_a_nan_loss_is_told_with_its_step() -> None:
    found = judged(lines(50, loss=lambda step: NAN if step >= 40 else 3.0))
    assert opened(found) == [("TrainingNonFinite", "page", 40)]


@pytest.mark.parametrize("value", [INF, -INF])
def test_an_infinite_loss_too(value: float) -> None:
    assert kinds(judged([line(1, loss=value)])) == {"TrainingNonFinite"}


def test_overflows_of_a_loss_scale_are_good_health() -> None:
    records = lines(3000, loss=noisy(falling), gradient_norm=lambda step: INF if step < 17 or not step % 2000 else 1.0)
    assert judged(records) == []


def test_gradients_that_never_come_back_are_told() -> None:
    records = lines(300, loss=noisy(falling), gradient_norm=lambda step: INF if step >= 200 else 1.0)
    assert opened(judged(records))[0] == ("TrainingNonFinite", "page", 232)


def test_gradients_that_are_no_numbers_are_told_at_the_second() -> None:
    records = lines(300, loss=noisy(falling), gradient_norm=lambda step: NAN if step >= 200 else 1.0)
    assert opened(judged(records))[0] == ("TrainingNonFinite", "page", 201)


@pytest.mark.parametrize(("high", "found"), [(2, []), (3, [("TrainingLossSpike", "ticket", 802)])])
def test_a_jump_counts_from_the_third_step_on(high: int, found: list[object]) -> None:
    level = noisy(falling)
    records = lines(1200, loss=lambda step: level(step) + (1.0 if 800 <= step < 800 + high else 0.0))
    assert opened(judged(records)) == found


def test_a_jump_that_lasts_is_the_new_level_and_the_next_one_is_told_again() -> None:
    level = noisy(falling)
    records = lines(3000, loss=lambda step: level(step) + 4.0 * (step >= 800) + (2200 <= step < 2210))
    found = [one for one in with_ticks(records) if one.finding.kind == "TrainingLossSpike"]
    states = [(one.state, one.when - BEGAN) for one in found]
    assert [state for state, _ in states] == ["open", "close", "open", "close"]
    assert 800 + ACCEPTED_STEPS < states[1][1] < 800 + ACCEPTED_STEPS + 200
    assert states[2][1] == 2202


def test_a_small_jump_in_little_noise_is_one_and_in_much_noise_is_none() -> None:
    for sigma, wanted in ((0.01, {"TrainingLossSpike"}), (0.2, set())):
        level = noisy(falling, sigma)
        records = lines(1200, loss=lambda step, of=level: of(step) + (0.3 if 800 <= step < 810 else 0.0))
        assert kinds(judged(records)) == wanted, sigma


def test_a_loss_five_times_as_high_that_stays_is_a_page() -> None:
    level = noisy(falling)
    records = lines(1500, loss=lambda step: level(step) * (6.0 if step >= 1200 else 1.0))
    assert ("TrainingLossDiverging", "page", 1209) in opened(judged(records))


def test_one_that_comes_back_is_none() -> None:
    level = noisy(falling)
    records = lines(1500, loss=lambda step: level(step) * (6.0 if 1200 <= step < 1208 else 1.0))
    assert kinds(judged(records)) == {"TrainingLossSpike"}


def test_three_times_as_high_is_a_jump_alone() -> None:
    level = noisy(falling)
    records = lines(1500, loss=lambda step: level(step) * (3.0 if step >= 1200 else 1.0))
    assert "TrainingLossDiverging" not in kinds(judged(records))


@pytest.mark.parametrize(("after", "diverges"), [(400.0, True), (60.0, True), (-60.0, False)])
def test_a_loss_below_nothing_diverges_when_it_stays_above(after: float, diverges: bool) -> None:
    level = noisy(lambda step: -100.0 - 0.01 * step if step < 1200 else after, 3.0)
    found = judged(lines(1500, loss=level))
    assert ("TrainingLossDiverging" in kinds(found)) == diverges
    assert all(one.finding.threshold is not None for one in found)


def test_a_spike_below_nothing_is_one_alone() -> None:
    level = noisy(lambda step: 400.0 if 1200 <= step < 1220 else -100.0 - 0.01 * step, 3.0)
    assert kinds(judged(lines(1500, loss=level))) >= {"TrainingLossSpike"}
    assert "TrainingLossDiverging" not in kinds(judged(lines(1500, loss=level)))


@pytest.mark.parametrize("after", [0.0, 1e-4])
def test_a_loss_that_begins_at_nothing_does_not_diverge(after: float) -> None:
    records = lines(400, loss=lambda step: 0.0 if step < 80 else after)
    assert "TrainingLossDiverging" not in kinds(judged(records))


def test_a_reward_around_nothing_does_not_diverge() -> None:
    level = noisy(lambda step: 0.01, 0.02)
    assert "TrainingLossDiverging" not in kinds(judged(lines(3000, loss=level)))


def test_a_loss_near_nothing_may_grow_fivefold() -> None:
    records = lines(1500, loss=lambda step: max(5 * 0.98**step, 0.001) * (6.0 if step >= 1200 else 1.0))
    assert "TrainingLossDiverging" not in kinds(judged(records))


def test_blocks_that_become_larger_lose_no_step() -> None:
    blocks = Blocks(1, 8)
    for value in range(1000):
        blocks.add(float(value))
        told = blocks.means[-1] + (blocks.size - 1) / 2
        assert value - blocks.size < told <= value
    assert len(blocks.means) < 8


def test_a_loss_that_does_not_fall_is_a_ticket_and_one_that_falls_slowly_is_none() -> None:
    flat = noisy(lambda step: 3.0)
    slow = noisy(lambda step: 4.0 * step**-0.08)
    assert kinds(judged(lines(4000, loss=flat))) == {"TrainingLossNotDecreasing"}
    assert judged(lines(20_000, loss=slow)) == []


def test_a_loss_that_falls_on_from_a_higher_level_falls_and_one_that_stays_there_does_not() -> None:
    def slowly(step: int) -> float:
        return 2.4 + 8.4 * (step / 25 + 1) ** -0.35

    falls = noisy(lambda step: slowly(step) + 0.45 * (step >= 1500), 0.03)
    stays = noisy(lambda step: slowly(min(step, 1500)) + 0.45 * (step >= 1500), 0.03)
    assert "TrainingLossNotDecreasing" not in kinds(judged(lines(2500, loss=falls)))
    assert "TrainingLossNotDecreasing" in kinds(judged(lines(4500, loss=stays)))


def test_at_a_schedule_s_end_it_need_not_fall() -> None:
    flat = noisy(lambda step: 3.0)
    records = lines(4000, loss=flat, learning_rate=lambda step: 3e-4 if step < 900 else 1e-6)
    assert judged(records) == []


def test_gradients_explode_beside_their_own_median() -> None:
    grown = lines(300, gradient_norm=lambda step: 60.0 if step >= 200 else 8.0)
    usual = lines(300, gradient_norm=lambda step: 60.0 if step >= 200 else 15.0)
    assert "TrainingGradientExplosion" in kinds(judged(grown))
    assert kinds(judged(usual)) == {"TrainingGradientNormHigh"}


def test_a_gradient_norm_over_ten_is_a_ticket() -> None:
    assert kinds(judged(lines(300, gradient_norm=lambda step: 10.5))) == {"TrainingGradientNormHigh"}
    assert judged(lines(300, gradient_norm=lambda step: 9.9)) == []


def test_gradients_vanish() -> None:
    assert kinds(judged(lines(60, gradient_norm=lambda step: 5e-8))) == {"TrainingGradientVanishing"}
    assert judged(lines(60, gradient_norm=lambda step: 2e-7)) == []


def test_layers_that_vanish_are_told_where_they_are_watched() -> None:
    assert kinds(judged(lines(20, vanishing_layers=lambda step: 2))) == {"TrainingGradientVanishing"}
    assert judged(lines(20, vanishing_layers=lambda step: 0)) == []


def test_a_high_norm_hides_no_layers_that_vanish() -> None:
    records = lines(20, gradient_norm=lambda step: 20.0, vanishing_layers=lambda step: 2)
    assert kinds(judged(records)) == {"TrainingGradientNormHigh", "TrainingGradientVanishing"}


def test_a_learning_rate_that_stays_at_nothing_is_told_and_a_schedule_s_last_steps_are_not() -> None:
    stays = lines(2000, learning_rate=lambda step: 3e-4 if step < 1000 else 1e-10)
    ends = lines(2000, learning_rate=lambda step: 3e-4 * (1 + math.cos(math.pi * step / 2000)) / 2)
    assert kinds(judged(stays)) == {"TrainingLearningRateTooLow"}
    assert judged(ends) == []


def test_a_learning_rate_that_grows_and_a_loss_that_rises_after_it() -> None:
    level = noisy(falling)
    rises = lines(1500, loss=lambda step: level(step) + max(0, step - 1030) * 0.01,
                  learning_rate=lambda step: 3e-4 if step < 1000 else 3e-3)  # fmt: skip
    warms = lines(1500, loss=noisy(falling), learning_rate=lambda step: 3e-4 * min(1.0, step / 200))
    assert "TrainingLearningRateTooHigh" in kinds(judged(rises))
    assert judged(warms) == []


def test_a_number_that_is_too_large_for_any_float_costs_nobody_else_the_line() -> None:
    engine = Engine()
    changes = judged(lines(60, loss=lambda step: 10**400, gradient_norm=lambda step: 50.0), engine)
    assert engine.failures == 0
    assert "TrainingGradientNormHigh" in kinds(changes)


@pytest.mark.parametrize(("times", "is_told"), [(1.0, False), (2.0, True)])
def test_a_warm_restart_is_no_higher_a_rate_than_the_run_has_borne(times: float, is_told: bool) -> None:
    def rate(step: int) -> float:
        return (times if step >= 600 else 1.0) * (3e-4 * (1 + math.cos(math.pi * (step % 600) / 600)) / 2 + 1e-6)

    def loss(step: int) -> float:
        return 3.0 - step / 10_000 + (0.005 * min(60, step - 600) if step > 600 else 0.0)

    found = kinds(judged(lines(1100, loss=loss, learning_rate=rate)))
    assert ("TrainingLearningRateTooHigh" in found) == is_told
