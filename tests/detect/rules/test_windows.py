"""Each window beside the plain statistics of the values that it is over."""

import math
import random
import statistics

import pytest

from trainvitals.detect.rules.spans import Span
from trainvitals.detect.rules.windows import MOST_HELD, WINDOWS


def line(points):
    return statistics.linear_regression(*zip(*points, strict=True)).slope


PLAIN = {"mean": lambda points: statistics.fmean(value for _, value in points),
         "median": lambda points: statistics.median(value for _, value in points),
         "min": lambda points: min(value for _, value in points),
         "max": lambda points: max(value for _, value in points), "slope": line}  # fmt: skip


def noise(count):
    dice = random.Random(7)
    return [dice.choice((dice.gauss(1, 5), round(dice.gauss(1, 2)), 1e6 * dice.random())) for _ in range(count)]


@pytest.mark.parametrize("kind", WINDOWS)
@pytest.mark.parametrize("steps", [2, 3, 10, 101])
def test_of_the_last_steps_it_says_what_they_add_up_to(kind, steps):
    window, points = WINDOWS[kind](Span(steps=steps)), []
    for step, value in enumerate(noise(1000), 500):
        window.push(step, value)
        points.append((step, value))
        if len(points) < steps:
            assert window.value() is None
        else:
            assert window.value() == pytest.approx(PLAIN[kind](points[-steps:]), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("kind", WINDOWS)
def test_of_the_last_seconds_too_once_they_have_passed(kind):
    window, points, dice = WINDOWS[kind](Span(seconds=30)), [], random.Random(3)
    when = 1e9
    for value in noise(600):
        when += dice.choice((0.3, 1, 5))
        window.push(when, value)
        points.append((when, value))
        if when - points[0][0] < 30:
            assert window.value() is None
        else:
            held = [(x, value) for x, value in points if when - x <= 30]
            assert window.value() == pytest.approx(PLAIN[kind](held), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("kind", WINDOWS)
def test_a_stretch_of_time_holds_no_more_however_fast_values_come(kind):
    window = WINDOWS[kind](Span(seconds=10))
    values = noise(50_000)
    for at, value in enumerate(values):
        window.push(at / 1000, value)
        assert len(window._held) <= MOST_HELD + 2
    if kind in ("min", "max"):
        assert window.value() == PLAIN[kind]([(0, value) for value in values[-10_000:]])
    else:
        assert math.isfinite(window.value())


@pytest.mark.parametrize("kind", WINDOWS)
def test_after_a_gap_and_from_an_earlier_step_it_begins_anew(kind):
    window = WINDOWS[kind](Span(seconds=10))
    for when in range(20):
        window.push(when, 9.0)
    window.push(40, 1.0)
    assert window.value() is None
    resumed = WINDOWS[kind](Span(steps=3))
    for step in (7, 8, 9, 4, 5):
        resumed.push(step, float(step))
    assert resumed.value() is None
    resumed.push(6, 6.0)
    assert resumed.value() == {"slope": 1.0, "min": 4.0, "max": 6.0}.get(kind, 5.0)


@pytest.mark.parametrize("kind", WINDOWS)
def test_values_whose_sum_is_too_large_harm_nothing_for_long(kind):
    window = WINDOWS[kind](Span(steps=4))
    for step in range(8):
        window.push(step, 1e308)
        window.value()
    for step in range(8, 20):
        window.push(step, 2.0)
    assert window.value() == (0.0 if kind == "slope" else 2.0)


def test_a_sum_does_not_drift():
    window = WINDOWS["mean"](Span(steps=10))
    for step in range(20_000):
        window.push(step, 1e15 if step % 1000 == 0 else 0.1)
    assert window.value() == pytest.approx(0.1)
