"""The rehearsal says at its end what it measured."""

from types import SimpleNamespace
from typing import Any

from tests.rehearsal.conftest import pytest_terminal_summary


def test_what_was_measured_is_said_whether_it_was_well_or_not() -> None:
    said: list[str] = []
    stats: dict[str, Any] = {
        "passed": [SimpleNamespace(user_properties=[("a second run", "40 s")]), SimpleNamespace(user_properties=[])],
        "failed": [SimpleNamespace(user_properties=[("a third", "9 s")])],
    }
    pytest_terminal_summary(SimpleNamespace(stats=stats, write_line=said.append))  # type: ignore[arg-type]
    assert said == ["rehearsal: a second run: 40 s", "rehearsal: a third: 9 s"]
