"""Simulated GPUs: the same course for the same seed, and movements that a real GPU makes."""

import pytest

from trainvitals import catalog
from trainvitals.clock import Clock
from trainvitals.config import SCENARIOS
from trainvitals.errors import DeviceLost, SettingError
from trainvitals.sources.simulated import COURSES, SimulatedSource


class Hands:
    """A clock that moves when told."""

    def __init__(self) -> None:
        self.at = 1000.0

    def clock(self) -> Clock:
        return Clock(lambda: self.at + 1.7e9, lambda: self.at)


def course(scenario: str, seconds: int, gpu: int = 0, seed: int = 0) -> list[dict[str, float]]:
    hands = Hands()
    device = SimulatedSource(8, scenario, seed, hands.clock()).discover()[gpu]
    rows = []
    for _ in range(seconds):
        hands.at += 1
        rows.append(dict(device.read("fast")[0].values))
    return rows  # type: ignore[return-value]


def test_the_settings_and_the_source_know_the_same_scenarios() -> None:
    assert set(SCENARIOS) == set(COURSES)


def test_a_seed_gives_one_course_and_another_seed_another() -> None:
    assert course("healthy", 30, seed=1) == course("healthy", 30, seed=1)
    assert course("healthy", 30, seed=1) != course("healthy", 30, seed=2)


def test_heat_follows_power_with_a_lag() -> None:
    rows = course("healthy", 200)
    power_there = next(at for at, row in enumerate(rows) if row["power_draw_watts"] > 600)
    heat_there = next(at for at, row in enumerate(rows) if row["temperature_celsius"] > 60)
    assert power_there < 10 < heat_there < 100
    assert max(row["temperature_celsius"] for row in rows) < 80


def test_a_hang_is_busy_without_power() -> None:
    last = course("hang", 30)[-1]
    assert last["utilization_percent"] == 100
    assert last["power_draw_watts"] < 150


def test_throttling_holds_the_clock_of_one_gpu() -> None:
    faulty, healthy = course("throttled", 120, gpu=6)[-1], course("throttled", 120, gpu=0)[-1]
    assert faulty["clock_hertz_sm"] < 0.7 * healthy["clock_hertz_sm"]
    assert "hw_thermal_slowdown" in faulty["throttle_active"]  # type: ignore[operator]
    assert faulty["temperature_celsius"] > healthy["temperature_celsius"]


def test_starved_gpus_are_seldom_busy() -> None:
    busy = [row["utilization_percent"] for row in course("starved", 100)]
    assert sum(busy) / len(busy) < 50


def test_hot_comes_near_its_limit_and_idle_draws_little() -> None:
    assert course("hot", 200, gpu=6)[-1]["temperature_celsius"] > 80
    assert course("idle", 60)[-1]["power_draw_watts"] < 80


@pytest.mark.parametrize("scenario", ["lost", "xid79"])
def test_a_gpu_that_falls_off_the_bus(scenario: str) -> None:
    with pytest.raises(DeviceLost):
        course(scenario, 30, gpu=6)
    assert course(scenario, 30, gpu=0)


def test_xid79_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    hands = Hands()
    source = SimulatedSource(8, "xid79", 0, hands.clock())
    assert list(source.wait_events(0)) == []
    hands.at += 10
    assert [event.details for event in source.wait_events(0)] == [{"xid": 79}]
    assert list(source.wait_events(0)) == []


def test_ecc_errors_count_up() -> None:
    hands = Hands()
    device = SimulatedSource(8, "ecc", 0, hands.clock()).discover()[6]
    counts = []
    for _ in range(60):
        hands.at += 1
        counts.append(device.read("slow")[0].values["ecc_volatile_errors_total_corrected"])
    assert counts == sorted(counts)
    assert counts[-1] > 20  # type: ignore[operator]


def test_only_catalogue_fields_are_told() -> None:
    device = SimulatedSource(1).discover()[0]
    for tier in ("fast", "slow", "rare"):
        told = next(reading for reading in device.read(tier) if reading.scope == "gpu")  # type: ignore[arg-type]
        assert set(told.values) <= set(catalog.fields("gpu", tier))  # type: ignore[arg-type]


def test_no_gpu_and_an_unknown_scenario() -> None:
    assert list(SimulatedSource(0).discover()) == []
    with pytest.raises(SettingError, match="choose one of"):
        SimulatedSource(1, "on fire")
