"""docs/rules.md says what is."""

import re
from pathlib import Path

import pytest

pytest.importorskip("yaml", reason="yaml is not installed")

from trainvitals.detect.rules.errors import RuleError
from trainvitals.detect.rules.grammar import FUNCTIONS
from trainvitals.detect.rules.reading import KEYS, SECTIONS, read

PAGE = (Path(__file__).parents[3] / "docs" / "rules.md").read_text()


def test_its_rules_are_rules():
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    contents = read("alerts.yml", text)
    assert [rule.name for rule in contents.rules] == ["Hot loss", "Hot card", "Loss went up", "Validation is lost"]
    assert contents.sections == {"thresholds": {"gpu_temperature": 85}}


def test_it_names_every_key_and_every_function():
    for name in (*KEYS, *SECTIONS):
        assert f"`{name}`" in PAGE
    for name in FUNCTIONS:
        assert f"`{name}" in PAGE


def test_its_error_is_what_is_said():
    with pytest.raises(RuleError) as raised:
        read("alerts.yml", "rules:\n  - name: x\n    when: loss >> 5\n")
    assert str(raised.value) in PAGE
