import math

import pytest

from trainvitals.detect.rules.errors import ExpressionError
from trainvitals.detect.rules.message import message

VALUES = {"run.loss": 9.876, "run.target": 2.0, "run.step": 1_234_567.0, "run.val/loss": 3.0, "run.bad": math.nan}
TEXTS = {"run.model": "gemma {loss}", "gpu": "3", "run": "a"}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Loss is {loss:.2f}", "Loss is 9.88"),
        ("{loss} at {step}, {step:,d}, {step:d}", "9.876 at 1234567, 1,234,567, 1234567"),
        ("{loss / target:.1f} times {`val/loss`:>6.1f}|{loss:+.0e}", "4.9 times    3.0|+1e+01"),
        ("{target:.0%} {{loss}} }}{{", "200% {loss} }{"),
        ("{bad} {bad:d} {bad:.1f}", "nan nan nan"),
        ("of {model} and {nobody:.2f} on GPU {gpu} of {run}", "of gemma {loss} and {nobody:.2f} on GPU 3 of a"),
        ("{uuid}", "{uuid}"),
        ("no braces", "no braces"),
    ],
)  # fmt: skip
def test_what_is_known_is_filled_in_and_the_rest_stays_as_it_is_written(text, shown):
    assert message(text).shown(VALUES, TEXTS) == shown


@pytest.mark.parametrize(
    ("text", "at", "words"),
    [
        ("a {loss.__class__} b", 7, "a dot stands only after run, gpu or host"),
        ("{0.__class__.__mro__}", 3, "is not expected here"),
        ("{loss[0]}", 5, "'[' has no meaning here"),
        ("{loss!r}", 5, "'!' has no meaning here"),
        ("{().__class__}", 2, "a value is wanted here"),
        ("{}", 1, "a value is wanted here"),
        ("{loss:999999999}", 6, "is no format of a number"),
        ("{loss:.999999999f}", 6, "is no format of a number"),
        ("{loss:{target}}", 0, "a brace has no partner"),
        ("{loss:c}", 6, "is no format of a number"),
        ("{loss", 0, "write {{ or }} for a brace itself"),
        ("loss}", 4, "a brace has no partner"),
        ("{loss > 3}", 1, "this is a condition, not a number"),
        ("x" * 1001, 1000, "say it shorter"),
    ],
)
def test_what_reaches_for_more_is_refused_with_its_place(text, at, words):
    with pytest.raises(ExpressionError, match=r"\w") as raised:
        message(text)
    assert words in str(raised.value)
    assert raised.value.at == at


def test_what_is_shown_is_bounded():
    texts = {"run.model": "m" * 5000}
    assert len(message("{model}" * 100).shown({}, texts)) == 2000
