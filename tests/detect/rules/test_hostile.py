"""Whatever is written into alerts.yml: nothing but the rules' own errors, and an end."""

from contextlib import suppress

import pytest

pytest.importorskip("yaml", reason="yaml is not installed")

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trainvitals.detect.rules.errors import ExpressionError, RuleError
from trainvitals.detect.rules.grammar import condition
from trainvitals.detect.rules.message import message
from trainvitals.detect.rules.reading import read
from trainvitals.detect.rules.rules import Rules

WORDS = ["loss", "step", "`val/loss`", "gpu.temperature_celsius", "host.cpu_count", "nan", "inf", "and", "or", "not",
         "(", ")", ",", ".", "+", "-", "*", "/", "%", "<", ">", "==", "!=", "<=", "1", "0", "1e308", "1e-320", "5m",
         "9" * 400, "100 steps", "mean(", "min(", "max(", "slope(", "median(", "abs(", "isnan(", "known(", "__class__",
         "().__class__", "{", "}", "lambda", "eval(", "import os", "\0", "\n", "\u017f", "²", "\u0663"]  # fmt: skip
EXPRESSIONS = st.lists(st.sampled_from(WORDS), max_size=40).map(" ".join) | st.text(max_size=200)
NUMBERS = (
    st.floats(allow_nan=True, allow_infinity=True) | st.integers() | st.booleans() | st.none() | st.text(max_size=5)
)
LINES = st.dictionaries(st.sampled_from(["loss", "val/loss", "step", "target"]), NUMBERS)

ATTACKS = ["__class__", "().__class__", "loss.__class__.__mro__", "__import__('os').system('true')", "[].append(1)",
           "(lambda: 1)()", "loss if 1 else 2", "f'{loss}'", "loss; step", "loss := 3", "globals()", "exec(1) > 0",
           "abs.__self__ > 1", "gpu.__class__ > 1", "mean.__globals__ > 1",
           "9**9**9**9 > loss", "1e400 > loss", "loss > 0x10", "loss @ 2 > 1", "loss.real > 1"]  # fmt: skip


@given(EXPRESSIONS)
@settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_random_text_is_parsed_or_refused(text):
    for parse in (condition, message, lambda text: message(f"a {{{text}:.2f}} b")):
        with suppress(ExpressionError):
            parse(text)


@given(EXPRESSIONS, st.lists(LINES, max_size=10), st.sampled_from(["", "'", '"', "|\n    ", ">\n    "]))
@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_what_is_taken_can_be_asked_of_anything(text, lines, style):
    close = style if style in ("'", '"') else ""
    try:
        contents = read("alerts.yml", f"- name: a\n  when: {style}{text}{close}\n  message: '{{loss}} {{step:d}}'\n")
    except RuleError:
        return
    rules = Rules(contents.rules)
    for when, line in enumerate(lines):
        for finding in rules.training("a", 0, float(when), line):
            assert isinstance(finding.what, str)
        rules.gpu(float(when), {"gpu": "0"}, {"temperature_celsius": line.get("loss")})
        rules.host(float(when), {"cpu_count": line.get("loss")})


@given(st.text() | st.binary().map(lambda data: data.decode("utf-8", "replace")))
@settings(max_examples=300, deadline=None)
def test_a_random_file_is_read_or_refused(text):
    with suppress(RuleError):
        read("alerts.yml", text)


@pytest.mark.parametrize("text", ATTACKS)
def test_python_is_not_spoken_here(text):
    with pytest.raises(ExpressionError):
        condition(text)


def test_a_name_of_pythons_is_a_field_as_any_other():
    found = condition("__class__ > 1 and run.__dict__ > 1")
    assert found.names == {"run.__class__", "run.__dict__"}
    assert found.test({}) is None


@pytest.mark.parametrize("brackets", ["(", "mean(", "not ", "-", "abs("])
def test_deep_nesting_is_refused_at_any_depth(brackets):
    for depth in (31, 100, 900):
        with pytest.raises(ExpressionError):
            condition(brackets * depth + "loss > 1")


def test_many_small_parts_make_no_deep_stack():
    text = " or ".join(["a>1"] * 90)
    assert condition(text).test({"run.a": 2.0}) is True
    assert condition("+".join(["a"] * 190) + " > 1").test({"run.a": 2.0}) is True


def test_names_that_yaml_makes_something_else_of_are_text():
    contents = read("alerts.yml", "- {name: yes, when: on > 1, message: null is null}\n- {name: 0x10, when: loss > 1}")
    assert [rule.name for rule in contents.rules] == ["yes", "0x10"]
