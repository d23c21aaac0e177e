"""Who gets what, asked of amtool; and what each way of inhibiting says."""

from pathlib import Path
from typing import Any

import pytest

from tests.alerting.support import FULL, amtool, made
from trainvitals.alerting.channels import NEEDED

PEOPLE = [channel for channel in NEEDED if channel != "deadman"]
TRIALS = ",".join(f"test-{channel}" for channel in (*NEEDED, "collector"))
ROUTES = [
    ("severity=page alertname=GpuMissing instance=gpu1", "collector,page"),
    ("severity=ticket alertname=GpuTemperatureHigh", "collector,ticket"),
    ("severity=info alertname=HostRebooted", "collector,nobody"),
    ("alertname=SomebodysOwn", "collector,page"),
    ("alertname=SomebodysOwn severity=critical", "collector,page"),
    ("alertname=Watchdog severity=none", "deadman"),
    ("alertname=AlertTest severity=page alert_test=1", TRIALS),
    ("alertname=TrainingStalled severity=page source=agent folded=GpuXidFatal", "nobody"),
    ("alertname=TrainingStalled severity=ticket source=agent run=gemma folded=GpuXidFatal", "nobody"),
    ("alertname=TrainingStalled severity=page source=agent run=gemma", "collector,page"),
]


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("everything")
    made(folder, FULL)
    return folder / "alertmanager.yml"


@pytest.mark.parametrize(("labels", "receivers"), ROUTES)
def test_an_alert_goes_to(everything: Path, labels: str, receivers: str) -> None:
    told = amtool("config", "routes", "test", f"--config.file={everything}", f"--verify.receivers={receivers}",
                  *labels.split())  # fmt: skip
    assert told.returncode == 0, told.stdout + told.stderr


@pytest.mark.parametrize(("labels", "receivers"), [
    ("severity=page", "collector,page"), ("severity=ticket", "collector,ticket"), ("alertname=Watchdog", "nobody"),
    ("severity=page folded=GpuXidFatal", "nobody"),
    ("alert_test=1", "test-collector"), ("severity=page alertname=AlertmanagerDown", "collector,page"),
])  # fmt: skip
def test_with_nothing_set_an_alert_goes_to(tmp_path: Path, labels: str, receivers: str) -> None:
    config = made(tmp_path, {})
    told = amtool("config", "routes", "test", f"--config.file={tmp_path / 'alertmanager.yml'}",
                  f"--verify.receivers={receivers}", *labels.split())  # fmt: skip
    assert told.returncode == 0, told.stdout + told.stderr
    assert _kinds(config, "collector") == ["webhook_configs"]


def _receiver(config: dict[str, Any], name: str) -> dict[str, Any]:
    return next(receiver for receiver in config["receivers"] if receiver["name"] == name)


def _kinds(config: dict[str, Any], name: str) -> list[str]:
    return [key for key in _receiver(config, name) if key != "name"]


@pytest.mark.parametrize("channel", PEOPLE)
def test_a_channel_gets_pages_and_all_but_the_pager_get_tickets(tmp_path: Path, channel: str) -> None:
    config = made(tmp_path, {name: FULL[name] for name in NEEDED[channel]})
    assert _kinds(config, "page") == _kinds(config, f"test-{channel}") == [f"{channel}_configs"]
    assert _kinds(config, "ticket") == ([] if channel == "pagerduty" else [f"{channel}_configs"])
    assert all(each["send_resolved"] for each in _receiver(config, "page")[f"{channel}_configs"])


def test_the_dead_mans_switch_hears_the_watchdog_alone_and_never_its_end(tmp_path: Path) -> None:
    config = made(tmp_path, {"DEADMAN_URL": "https://hc.example/x"})
    assert _kinds(config, "page") == _kinds(config, "ticket") == []
    assert _receiver(config, "deadman")["webhook_configs"][0]["send_resolved"] is False


@pytest.mark.parametrize(("hours", "spans"), [
    ("22:00-07:00", [("22:00", "24:00"), ("00:00", "07:00")]), ("08:00-17:30", [("08:00", "17:30")]),
    ("22:00-00:00", [("22:00", "24:00")]), ("00:00-06:00", [("00:00", "06:00")]),
])  # fmt: skip
def test_quiet_hours_mute_tickets_alone(tmp_path: Path, hours: str, spans: list[tuple[str, str]]) -> None:
    config = made(tmp_path, {"QUIET_HOURS": f"{hours} Asia/Tokyo"})
    [interval] = config["time_intervals"][0]["time_intervals"]
    assert [(time["start_time"], time["end_time"]) for time in interval["times"]] == spans
    assert interval["location"] == "Asia/Tokyo"
    muted = [route for route in config["route"]["routes"] if "mute_time_intervals" in route]
    assert [route["receiver"] for route in muted] == ["ticket"]
    # What holds for a route does not for those within it.
    assert all("mute_time_intervals" in route for route in muted[0]["routes"])


def test_without_quiet_hours_nothing_is_muted(tmp_path: Path) -> None:
    config = made(tmp_path, {})
    assert "time_intervals" not in config
    assert not [route for route in config["route"]["routes"] if "mute_time_intervals" in route]


def test_a_fault_waits_for_its_message_no_longer_than_it_must(tmp_path: Path) -> None:
    """Of 45 s a scrape and an evaluation may take 30."""
    config = made(tmp_path, FULL)
    tickets = next(route for route in config["route"]["routes"] if route["receiver"] == "ticket")
    assert (config["route"]["group_wait"], config["route"]["group_interval"]) == ("3s", "10s")
    assert tickets["group_wait"] == "5s"


def test_each_inhibition_speaks_of_a_place_and_never_of_itself(tmp_path: Path) -> None:
    for rule in made(tmp_path, {})["inhibit_rules"]:
        assert {"instance", "run"} & set(rule["equal"])
        assert rule["source_matchers"] != rule["target_matchers"]
