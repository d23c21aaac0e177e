"""Spot machines that stopped by the schedule, or idle, are started again by make deploy."""

from pathlib import Path
from typing import Any

import pytest

from deploy import spot
from deploy.cloud import CLOUDS
from tests.deploy.conftest import Program


def machine(name: str, *, is_spot: bool) -> dict[str, Any]:
    market = [{"market_type": "spot"}] if is_spot else []
    values = {"id": name, "availability_zone": "eu-west-1b", "instance_market_options": market}
    return {"type": "aws_instance", "values": values}


def state(*machines: dict[str, Any]) -> dict[str, Any]:
    return {"values": {"root_module": {"resources": [{"type": "aws_vpc", "values": {}}, *machines]}}}


@pytest.fixture
def asked(program: Program, tmp_path: Path) -> Path:
    """Of those asked about, i-stopped is; nothing is started that is named i-taken."""
    path = tmp_path / "asked"
    program(
        "aws",
        f"""echo "$*" >> {path}
case "$*" in
    *describe-instances*i-taken*) echo '["i-taken"]' ;;
    *describe-instances*) echo '["i-stopped"]' ;;
    *start-instances*i-taken*) echo 'IncorrectSpotRequestState: it was taken back' >&2; exit 255 ;;
esac""",
    )
    return path


def test_a_spot_machine_that_stopped_is_started_in_its_region(asked: Path) -> None:
    there = state(machine("i-stopped", is_spot=True), machine("i-other", is_spot=False))
    assert spot.start_stopped(CLOUDS["aws"], there) == ["i-stopped"]
    looked, waited, started, runs = asked.read_text().splitlines()
    assert "describe-instances --instance-ids i-stopped --filters" in looked and "i-other" not in looked
    assert "wait instance-stopped" in waited
    assert started == "ec2 start-instances --instance-ids i-stopped --region=eu-west-1"
    assert runs == "ec2 wait instance-running --instance-ids i-stopped --region=eu-west-1"


def test_one_that_the_cloud_took_back_is_told_and_stops_nothing(
    asked: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert spot.start_stopped(CLOUDS["aws"], state(machine("i-taken", is_spot=True))) == []
    assert "aws ec2 start-instances: IncorrectSpotRequestState: it was taken back" in capsys.readouterr().out
    assert "instance-running" not in asked.read_text()


def test_without_spot_machines_nobody_is_asked(asked: Path) -> None:
    assert spot.start_stopped(CLOUDS["aws"], state(machine("i-other", is_spot=False))) == []
    assert not asked.exists()
