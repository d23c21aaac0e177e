import math

import pytest

from trainvitals.detect.rules.errors import ExpressionError
from trainvitals.detect.rules.grammar import MAX_DEPTH, condition, number

KNOWN = {"run.loss": 4.0, "run.target": 1.5, "run.step": 600.0, "run.val/loss": 3.0, "run.bad": math.nan,
         "run.huge": math.inf, "run.zero": 0.0, "gpu.temperature_celsius": 80.0}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("loss > 2 * target and step > 500", True),
        ("loss > 2 * target and step > 600", False),
        ("loss>4 or loss<4", False),
        ("loss >= 4 and loss <= 4 and loss == 4 and not loss != 4", True),
        ("1 < target < 2 < loss", True),
        ("1 < target < 1.2 < loss", False),
        ("1 + 2 * 3 == 7 and (1 + 2) * 3 == 9 and loss > 0", True),
        ("2 - 1 - 1 == 0 and 8 / 2 / 2 == 2 and step % 100 == 0", True),
        ("-loss == -4 and +loss == 4 and - -loss == 4", True),
        ("loss > 1e-3 and loss > .5 and loss < 1E2 and loss < 5.", True),
        ("`val/loss` > 2.9", True),
        ("run.loss > 3", True),
        ("temperature_celsius > 79 and gpu.temperature_celsius > 79", True),
        ("`temperature_celsius` > 1", None),
        ("abs(target - loss) == 2.5", True),
        ("true_positives > 1 or loss > 3", True),
        ("not (loss > 5 or loss < 3)", True),
        ("not not loss > 3", True),
        ("isnan(bad) and not isnan(loss)", True),
        ("isinf(huge) and not isfinite(huge) and isfinite(loss)", True),
        ("loss < inf and -inf < loss", True),
        ("bad > 1 or bad < 1 or bad == bad", False),
        ("known(loss) and not known(nobody)", True),
        # What is unknown decides nothing, unless the rest does.
        ("nobody > 1", None),
        ("not nobody > 1", None),
        ("nobody > 1 or loss > 3", True),
        ("nobody > 1 and loss > 3", None),
        ("nobody > 1 and loss > 5", False),
        ("1 < nobody < 3", None),
        ("nobody + 1 > 0 or -nobody > 0 or abs(nobody) > 0 or isnan(nobody)", None),
        # By nothing.
        ("loss / zero > 1", None),
        ("loss % zero > 1", None),
        ("loss % huge >= 0 or huge % loss >= 0", True),
    ],
)
def test_a_condition_holds_or_not_or_nobody_knows(text, holds):
    assert condition(text).test(KNOWN) is holds


@pytest.mark.parametrize(
    ("text", "at", "words"),
    [
        ("loss >", 6, "a value is wanted here"),
        ("loss > > 3", 7, "a value is wanted here"),
        ("", 0, "a value is wanted here"),
        ("loss", 0, "this is a number, not a condition: compare it"),
        ("loss > 1 and target", 13, "this is a number, not a condition"),
        ("not loss", 4, "this is a number, not a condition"),
        ("(loss > 3) + 1 > 2", 1, "this is a condition, not a number"),
        ("loss > (3 > 2)", 8, "this is a condition, not a number"),
        ("-(loss > 2) > 1", 2, "this is a condition, not a number"),
        ("loss = 3", 5, "write == to compare"),
        ("loss && target", 5, "write `and`"),
        ("loss > 3 & step > 3", 9, "write `and`"),
        ("!loss", 0, "write `not`"),
        ("loss ** 2 > 3", 5, "there are no powers"),
        ("loss > 'high'", 7, "text cannot be compared"),
        ("loss > 3 step", 9, "'step' is not expected here"),
        ("loss > 3)", 8, "')' is not expected here"),
        ("(loss > 3", 9, "')' is wanted here: close the parenthesis"),
        ("`loss > 3", 0, "backquotes"),
        ("`` > 3", 0, "backquotes"),
        ("and > 3", 0, "a value is wanted here"),
        ("1 > 0", 0, "it asks for nothing that a line tells"),
        ("loss > 1e999", 7, "the number is too large"),
        ("loss == nan", 8, "write isnan(…)"),
        ("loss != -nan", 8, "write isnan(…)"),
        ("loss.item > 3", 4, "a dot stands only after run, gpu or host"),
        ("gpu.temp > 3", 4, "no line of a gpu has 'temp': the nearest is temperature_celsius"),
        ("host.cpu > 3", 5, "no line of a host has 'cpu'"),
        ("gpu.throttle_active > 3", 4, "no line of a gpu has 'throttle_active'"),
        ("gpu. > 3", 3, "a dot stands only after"),
        ("sqrt(loss) > 3", 0, "there is no function 'sqrt': known here: abs, known, isnan"),
        ("abs() > 3", 4, "a value is wanted here"),
        ("abs(loss, 2) > 3", 8, "abs takes one value"),
        ("mean(loss) > 3", 9, "say over how much, as mean(loss, 100 steps)"),
        ("mean(loss, 1) > 3", 11, "a window is over 2 values or more"),
        ("mean(loss, x) > 3", 11, "write it as 5 steps, 30s"),
        ("mean(loss, 2.5) > 3", 11, "steps are a whole number"),
        ("mean(loss, 99999) > 3", 11, "up to 10,000"),
        ("mean(loss, 30d) > 3", 11, "at most seven days"),
        ("mean(loss, 5 moons) > 3", 11, "write it as 5 steps"),
        ("mean(gpu.temperature_celsius, 5 steps) > 3", 30, "a gpu has no steps"),
        ("mean(3, 5) > loss", 5, "what one of run, gpu and host tells"),
        ("mean(loss * temperature_celsius, 5) > 3", 5, "what one of run, gpu and host tells"),
        ("loss > " + "9" * 1000, 1000, "longer than 1000 characters"),
        ("(" * 500 + "loss", MAX_DEPTH, "nested deeper than 30"),
        ("not " * 200 + "loss > 3", 4 * MAX_DEPTH, "nested deeper than 30"),
        ("-" * 500 + "loss > 3", MAX_DEPTH, "nested deeper than 30"),
        ("+".join(["x"] * 201) + " > 1", 400, "more than 200 parts"),
    ],
)
def test_an_error_says_where_and_what_mends_it(text, at, words):
    with pytest.raises(ExpressionError) as raised:
        condition(text)
    assert words in str(raised.value)
    assert raised.value.at == at


def test_a_long_chain_within_the_bounds_is_asked():
    assert condition(" + ".join(["loss"] * 140) + " > 559").test(KNOWN) is True


def test_a_number_may_stand_alone_where_one_is_wanted():
    assert number("loss / target - 1").ask({"run.loss": 3.0, "run.target": 1.5}) == 1.0
    with pytest.raises(ExpressionError, match="this is a condition"):
        number("loss > 3")


def test_what_it_names_and_what_tells_it_are_known():
    found = condition("step > 9 and not known(loss) and mean(`a b`, 3) > gpu.power_draw_watts")
    assert found.names == {"run.step", "run.loss", "run.a b", "gpu.power_draw_watts"}
    assert found.told_by == {"run.a b", "gpu.power_draw_watts"}


def test_a_field_that_is_called_as_a_window_is_another():
    found = condition("`mean(loss, 3 steps)` > 2 and mean(loss, 3) > 2")
    assert not {window.key for window in found.windows} & found.names
