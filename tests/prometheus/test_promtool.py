"""promtool on configuration, rules and their tests."""

from pathlib import Path

import pytest

from tests.prometheus.support import PROMETHEUS, RULE_FILES, case_files, promtool


def test_the_configuration_is_valid_and_names_every_rule_file() -> None:
    said = promtool("check", "config", PROMETHEUS / "prometheus.yml")

    assert all(f"rules/{name}.yml" in said for name in RULE_FILES)
    assert "targets/expected.rules.yml" in said


def test_no_rule_is_there_twice_or_doubtful() -> None:
    promtool("check", "rules", "--lint=all", "--lint-fatal", *(PROMETHEUS / "rules").glob("*.yml"))


@pytest.mark.parametrize("path", case_files(), ids=lambda path: path.name.removesuffix(".test.yml"))
def test_alerts_fire_where_they_should_and_not_beside_it(path: Path) -> None:
    promtool("test", "rules", path)
