"""Nothing that costs money or is gone happens before somebody said yes."""

import io
import sys
from datetime import date
from pathlib import Path

import pytest

from deploy import money, say
from deploy.cloud import CLOUDS
from deploy.errors import DeployError
from deploy.machines import _summary


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("answer", ["yes\n", "y\n", " YES \n"])
def test_yes_goes_on(monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    monkeypatch.delenv("YES", raising=False)
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    say.agree("Make this?")


@pytest.mark.parametrize("answer", ["no\n", "\n", "", "yes please\n"])
def test_anything_else_and_the_end_of_it_stop(monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    monkeypatch.setenv("YES", "0")
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    with pytest.raises(DeployError, match="nothing was done"):
        say.agree("Make this?")


def test_nobody_there_is_no_yes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("YES", raising=False)
    monkeypatch.setattr(sys, "stdin", io.StringIO("yes\n"))
    with pytest.raises(DeployError, match="say YES=1 to agree beforehand"):
        say.agree("Make this?")


@pytest.mark.parametrize("value", ["no", "false", "yes", "2"])
def test_what_is_neither_yes_nor_no_beforehand_is_asked_back(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("YES", value)
    with pytest.raises(DeployError, match=f"YES: '{value}' does not agree to this: YES=1 does"):
        say.agree("Make this?")


@pytest.mark.parametrize("value", ["1", "a", "b,a", ""])
def test_machines_with_data_go_by_their_names_alone(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("YES", value)
    monkeypatch.setattr(sys, "stdin", io.StringIO("yes\n"))
    with pytest.raises(DeployError, match="YES=a,b"):
        say.agree("Make this?", ["a", "b"])
    monkeypatch.setenv("YES", "a,b")
    say.agree("Make this?", ["a", "b"])


def test_the_log_is_one_s_own_and_the_one_before_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "aws.log"
    path.write_text("before")
    say.keep(path)
    say.line("for all")
    say.note("for the log\n")
    assert capsys.readouterr().out == "  for all\n"
    assert [line[9:] for line in path.read_text().splitlines()] == ["  for all", "for the log"]
    assert path.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "aws.old.log").read_text() == "before"


def test_a_price_table_of_more_than_a_year_is_told_with_its_age() -> None:
    price = {"as_of": "2025-06-30", "source": "https://example.com/prices"}
    assert not [*money.aged(price, date(2026, 6, 30)), *money.aged({}, date(2026, 6, 30))]
    (told,) = money.aged(price, date(2026, 11, 19))
    assert "of 2025-06-30, 16 months old: check it against https://example.com/prices" in told


def test_a_price_of_another_region_is_told_as_that() -> None:
    price = {"region": "us-east-1"}
    assert not [*money.elsewhere(price, "us-east-1"), *money.elsewhere({}, "eu-west-1"), *money.elsewhere(price, "")]
    (told,) = money.elsewhere(price, "eu-west-1")
    assert (
        told
        == "The price is that of us-east-1, but for what you set in `prices`: eu-west-1 may cost up to a third more"
    )
    planned = {"planned_values": {"outputs": {"price_per_hour": {"value": price}, "zone": {"value": "eu-west-1a"}}}}
    assert told in _summary(planned, CLOUDS["aws"])


def test_a_price_that_nobody_knows_is_not_zero() -> None:
    assert money.rate(0.8048) == "Price: about $0.80 an hour while they run"
    assert "stack_node_price" in money.rate(None)
    assert money.spent({}) == "What it cost is unknown."
