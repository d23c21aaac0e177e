"""promtool on configuration, rules and their tests."""

import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.prometheus.support import PROMETHEUS, RULE_FILES, case_files, promtool


def test_the_configuration_is_valid_and_names_every_rule_file() -> None:
    said = promtool("check", "config", PROMETHEUS / "prometheus.yml")

    assert all(f"rules/{name}.yml" in said for name in RULE_FILES)
    assert "targets/expected.rules.yml" in said


def test_no_rule_is_there_twice_or_doubtful() -> None:
    promtool("check", "rules", "--lint=all", "--lint-fatal", *(PROMETHEUS / "rules").glob("*.yml"))


@pytest.fixture(scope="module")
def judged() -> Iterator[dict[Path, Future[str]]]:
    """A promtool a processor: one uses little more than one, for minutes."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        yield {path: pool.submit(promtool, "test", "rules", path) for path in case_files()}
        pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize("path", case_files(), ids=lambda path: path.name.removesuffix(".test.yml"))
def test_alerts_fire_where_they_should_and_not_beside_it(path: Path, judged: dict[Path, Future[str]]) -> None:
    judged[path].result()
