"""GPUs and the machine: each limit from both sides, and how long it must hold."""

from collections.abc import Callable
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from tests.detect.support import BEGAN, kinds, line
from trainvitals.detect.engine import Engine
from trainvitals.detect.finding import Change
from trainvitals.detect.gpu_heat import Lately
from trainvitals.detect.held import Held

Values = dict[str, Any]
WELL: Values = {
    "utilization_percent": 95.0, "memory_used_mb": 60_000.0, "memory_total_mb": 80_000.0, "temperature_celsius": 65.0,
    "power_draw_watts": 600.0, "power_limit_watts": 700.0, "temperature_slowdown_celsius": 87.0,
    "memory_temperature_celsius": 80.0, "throttle_active": (), "pcie_generation": 5.0, "pcie_generation_max": 5.0,
    "pcie_width": 16.0, "pcie_width_max": 16.0, "pcie_replays_total": 0.0, "nvlink_links_active": 18.0,
    "nvlink_errors_total_replay": 0.0, "ecc_volatile_errors_total_corrected": 0.0,
    "ecc_volatile_errors_total_uncorrected": 0.0, "remapped_rows_pending": 0.0, "remapped_rows_failed": 0.0,
    "recovery_action": 0.0, "compute_processes": 1.0,
}  # fmt: skip
HOST: Values = {
    "cpu_usage_percent": 50.0, "cpu_iowait_ratio": 0.01, "memory_used_bytes": 5e11, "memory_total_bytes": 1e12,
    "memory_available_bytes": 5e11, "swap_bytes_total_in": 0.0, "swap_bytes_total_out": 0.0, "oom_kills_total": 3.0,
    "gpu_count": 8.0, "gpu_expected_count": 8.0,
}  # fmt: skip


def of_gpu(change: Callable[[float], Values], seconds: int, every: int = 2) -> list[Change]:
    engine, found = Engine(), list[Change]()
    for second in range(0, seconds, every):
        engine.gpu(BEGAN + second, "3", "GPU-3", WELL | change(second))
        found += engine.tick(BEGAN + second)
    assert not engine.failures
    assert all(one.finding.place[2:4] == ("3", "GPU-3") for one in found)
    return found


def of_host(change: Callable[[float], Values], seconds: int, every: int = 2) -> list[Change]:
    engine, found = Engine(), list[Change]()
    for second in range(0, seconds, every):
        engine.host(BEGAN + second, HOST | change(second))
        found += engine.tick(BEGAN + second)
    assert not engine.failures
    return found


def test_a_gpu_that_is_well_is_not_spoken_of() -> None:
    assert of_gpu(lambda second: {}, 7200, 5) == []


@pytest.mark.parametrize(("kind", "severity", "values", "near", "seconds"), [
    ("GpuTemperatureHigh", "ticket", {"temperature_celsius": 81.5}, {"temperature_celsius": 79.0}, 120),
    ("GpuThermalMargin", "ticket", {"temperature_celsius": 82.0}, {"temperature_celsius": 79.0}, 30),
    ("GpuThermalMargin", "page", {"temperature_celsius": 87.0}, {"temperature_celsius": 79.0}, 60),
    ("GpuMemoryTemperatureHigh", "ticket", {"memory_temperature_celsius": 97.0}, {"memory_temperature_celsius": 94.0},
     600),
    ("GpuMemoryHigh", "ticket", {"memory_used_mb": 73_000.0}, {"memory_used_mb": 71_000.0}, 600),
    ("GpuIdleAllocated", "ticket", {"utilization_percent": 2.0}, {"utilization_percent": 2.0, "memory_used_mb": 900.0},
     1900),
    ("GpuHardwareSlowdown", "page", {"throttle_active": ("hw_slowdown",)}, {"throttle_active": ("sw_power_cap",)}, 700),
    ("GpuPowerBrake", "ticket", {"throttle_active": ("hw_slowdown", "hw_power_brake")}, {}, 700),
    ("GpuPcieDegraded", "ticket", {"pcie_width": 8.0}, {"pcie_generation": 1.0, "utilization_percent": 0.0,
     "memory_used_mb": 10.0}, 900),
    ("GpuRowRemapFailed", "page", {"remapped_rows_failed": 1.0}, {}, 10),
    ("GpuRowRemapPending", "ticket", {"remapped_rows_pending": 1.0}, {}, 10),
    ("GpuRecoveryActionNeeded", "page", {"recovery_action": 1.0}, {}, 10),
])  # fmt: skip
def test_a_limit_from_both_sides(kind: str, severity: str, values: Values, near: Values, seconds: int) -> None:
    found = of_gpu(lambda second: values, seconds)
    assert (kind, severity) in {(one.finding.kind, one.finding.severity) for one in found}
    assert all(None not in (one.finding.value, one.finding.threshold) for one in found)
    assert kind not in kinds(of_gpu(lambda second: near, seconds))


@pytest.mark.parametrize(("reasons", "every", "words"), [
    (("hw_slowdown",), 0, "the hardware held its clocks down for 100% of the last 5 min"),
    (("hw_slowdown",), 70, "the hardware held its clocks down 6 times within the last 6 min"),
    (("hw_slowdown", "hw_power_brake"), 70, "the power brake was on 6 times within the last 6 min"),
])  # fmt: skip
def test_what_comes_and_goes_is_told_as_how_often_it_came(reasons: tuple[str, ...], every: int, words: str) -> None:
    def held(second: float) -> Values:
        return {"throttle_active": reasons if not every or second % every in (10, 12) else ()}

    assert of_gpu(held, 600)[0].finding.what == words


def test_what_is_counted_as_it_comes_and_goes_is_what_the_last_samples_hold() -> None:
    noise, lately, seen = Random(7), Lately(60.0), list[tuple[float, bool]]()
    for second in range(1000):
        when = second + noise.random() + 80.0 * (second > 500)
        is_so = noise.random() < (0.3, 0.9)[second // 100 % 2]
        lately.add(when, is_so)
        seen = [one for one in (*seen, (when, is_so)) if one[0] >= when - 60.0]
        held = [is_so for _, is_so in seen]
        begun = sum(now and not before for before, now in pairwise(held))
        assert (lately.held, lately.begun, lately.share) == (sum(held), begun, sum(held) / len(held))


def test_a_slow_link_is_told_with_what_it_is_and_what_it_could_be() -> None:
    found = of_gpu(lambda second: {"pcie_width": 8.0, "pcie_generation": 4.0}, 900)[0].finding
    words = "its PCIe link under load: generation 4 of 5, width 8 of 16"
    assert (found.value, found.threshold, found.what) == (4.0, 5.0, words)


@pytest.mark.parametrize(("kind", "field", "at_once"), [
    ("GpuEccUncorrectable", "ecc_volatile_errors_total_uncorrected", 1.0),
    ("GpuNvlinkDown", "nvlink_links_active", -1.0),
])  # fmt: skip
def test_a_counter_that_moves_is_told_at_once_and_what_was_there_before_is_not(
    kind: str, field: str, at_once: float
) -> None:
    moved = of_gpu(lambda second: {field: 20.0 + (at_once if second >= 100 else 0.0)}, 110)
    assert kinds(moved) == {kind}
    assert of_gpu(lambda second: {field: 20.0}, 110) == []


@pytest.mark.parametrize(("kind", "field"), [
    ("GpuPcieReplays", "pcie_replays_total"), ("GpuNvlinkErrors", "nvlink_errors_total_replay"),
])  # fmt: skip
def test_errors_that_keep_coming_are_told_and_a_few_are_not(kind: str, field: str) -> None:
    assert kinds(of_gpu(lambda second: {field: second // 30}, 900, 10)) == {kind}
    assert of_gpu(lambda second: {field: second // 120}, 900, 10) == []


@pytest.mark.parametrize("field", ["pcie_replays_total", "nvlink_errors_total_replay"])
def test_a_burst_of_errors_is_forgiven_however_long_the_gpu_was_watched(field: str) -> None:
    assert of_gpu(lambda second: {field: 500.0 * (second >= 1200)}, 2400, 10) == []
    assert of_gpu(lambda second: {field: min(500.0, max(0.0, second - 1200) * 4)}, 2400, 10) == []


def test_corrected_errors_that_become_more() -> None:
    field = "ecc_volatile_errors_total_corrected"
    assert kinds(of_gpu(lambda second: {field: second // 60}, 3600, 10)) == {"GpuEccCorrectedRate"}
    assert of_gpu(lambda second: {field: second // 600}, 3600, 10) == []


def test_memory_that_grows_without_end_and_a_warm_up_that_ends() -> None:
    leak = of_gpu(lambda second: {"memory_used_mb": 30_000.0 + second / 3600 * 3000}, 5400, 10)
    warm = of_gpu(lambda second: {"memory_used_mb": 30_000.0 + min(second, 1200) * 10}, 5400, 10)
    assert kinds(leak) == {"GpuMemoryLeak"}
    assert warm == []


def test_the_same_leak_after_a_restart_is_told_again() -> None:
    def two_lives(second: float) -> Values:
        life = second % 7200
        return {"memory_used_mb": 400.0 if life < 60 else 60_000.0 + life * 1.5}

    found = of_gpu(two_lives, 14_400, 10)
    assert [one.finding.kind for one in found if one.state == "open"] == ["GpuMemoryLeak"] * 2


def test_a_run_s_start_begins_a_leak_s_count_anew_where_others_hold_memory_too() -> None:
    engine, found = Engine(), list[Change]()
    engine.info("gemma", {}, {0: ["GPU-3"]})
    for second in range(0, 14_400, 10):
        if second % 7200 == 0:
            engine.begin("gemma", BEGAN + second)
        engine.gpu(BEGAN + second, "3", "GPU-3", WELL | {"memory_used_mb": 60_000.0 + second % 7200 * 1.5})
        engine.memory("gemma", BEGAN + second, 2e11 + second % 7200 * 1e7, 5e11)
        found += [one for one in engine.news() if one.state == "open"]
        engine.book.settle(BEGAN + second)
    assert sorted(one.finding.kind for one in found) == ["GpuMemoryLeak"] * 2 + ["HostMemoryLeak"] * 2


def test_memory_that_is_full_within_half_an_hour_is_a_page() -> None:
    found = of_gpu(lambda second: {"memory_used_mb": 60_000.0 + second * 10}, 1200, 5)
    assert "GpuOutOfMemorySoon" in kinds(found)


def test_what_holds_after_hours_without_a_word_has_to_hold_anew_and_where_words_are_seldom_it_holds_on() -> None:
    held = Held(600.0)
    assert [held.update(when, holds=True) for when in (0.0, 60.0, 7200.0, 7260.0)] == [False] * 4
    assert [held.update(when, holds=True) for when in (7500.0, 7800.0)] == [False, True]
    seldom = Held(600.0)
    assert [seldom.update(900.0 * number, holds=True) for number in range(4)] == [False, False, True, True]


def test_a_gpu_that_idles_may_be_shared_too() -> None:
    engine = Engine()
    engine.info("gemma", {}, {0: ["GPU-3"]})
    for second in range(0, 1900, 5):
        engine.gpu(BEGAN + second, "3", "GPU-3", WELL | {"utilization_percent": 2.0})
    for second in range(1900, 2000, 5):
        engine.gpu(BEGAN + second, "3", "GPU-3", WELL | {"utilization_percent": 2.0, "compute_processes": 3.0})
    assert kinds(engine.tick(BEGAN + 2000)) == {"GpuIdleAllocated", "GpuSharedByOthers"}


def test_fragments_are_told_of_a_run_that_starves_for_data_too() -> None:
    engine = Engine()
    engine.info("gemma", {}, {0: ["GPU-3"]})
    engine.gpu(BEGAN, "3", "GPU-3", WELL | {"memory_used_mb": 78_000.0})
    for step in range(1, 1800):
        memory = {"memory_reserved_mb": 40_000.0 + 20.0 * step, "memory_allocated_mb": 40_000.0}
        record = line(step, step_duration_seconds=0.5, data_wait_seconds=0.5, **memory)
        engine.training("gemma", 0, [record])
    assert kinds(engine.news()) == {"TrainingDataStarved", "GpuOutOfMemorySoon"}


def test_xids_by_their_numbers() -> None:
    for number, wanted in ((79, ("GpuXidFatal", "page")), (63, ("GpuXidWarning", "ticket")),
                           (31, ("GpuXidWarning", "info")), (1, None)):  # fmt: skip
        engine = Engine()
        engine.xid(BEGAN, "3", "GPU-3", number)
        found = [(one.finding.kind, one.finding.severity) for one in engine.news()]
        assert found == ([wanted] if wanted else []), number


def test_a_bus_fault_a_missing_gpu_and_a_stall_are_one_page() -> None:
    engine, found = Engine(), list[Change]()
    engine.info("gemma", {}, {0: ["GPU-3"]})
    engine.training("gemma", 0, [line(step, loss=3.0) for step in range(1, 11)])
    for second in range(20, 400, 2):
        if second == 20:
            engine.xid(BEGAN + second, "3", "GPU-3", 79)
        engine.host(BEGAN + second, HOST | {"gpu_count": 7.0})
        found += engine.tick(BEGAN + second)
    assert {one.finding.kind for one in found if one.cause is None} == {"GpuXidFatal"}
    last = [one for one in found if one.cause is None][-1]
    assert {one.kind for one in last.evidence} == {"GpuMissing", "TrainingStalled"}


@pytest.mark.parametrize(("kind", "values", "near", "seconds"), [
    ("HostCpuHigh", {"cpu_usage_percent": 95.0}, {"cpu_usage_percent": 88.0}, 900),
    ("HostMemoryHigh", {"memory_used_bytes": 8.7e11}, {"memory_used_bytes": 8.3e11}, 600),
    ("HostIowaitHigh", {"cpu_iowait_ratio": 0.25}, {"cpu_iowait_ratio": 0.15}, 900),
    ("GpuMissing", {"gpu_count": 7.0}, {}, 20),
])  # fmt: skip
def test_a_machine_s_limit_from_both_sides(kind: str, values: Values, near: Values, seconds: int) -> None:
    assert kinds(of_host(lambda second: values, seconds)) == {kind}
    assert of_host(lambda second: near, seconds) == []


def test_swap_counts_where_it_goes_both_ways() -> None:
    def both(second: float) -> Values:
        return {"swap_bytes_total_in": second * 2e6, "swap_bytes_total_out": second * 2e6}

    assert kinds(of_host(both, 600)) == {"HostSwapThrash"}
    assert of_host(lambda second: {"swap_bytes_total_out": second * 2e6}, 600) == []


def test_a_missing_gpu_is_named_once_by_the_machine_that_counts() -> None:
    engine, found = Engine(), list[Change]()
    for second in range(0, 60, 2):
        if second >= 30:
            engine.missing(BEGAN + second, "3", "GPU-3", "")
        engine.host(BEGAN + second, HOST | {"gpu_count": 8.0 - (second >= 30)})
        found += engine.tick(BEGAN + second)
    assert [one.finding.what for one in found] == ["7 of 8 GPUs answer: GPU 3 (GPU-3) is missing"]


def test_a_killed_process_is_told() -> None:
    assert kinds(of_host(lambda second: {"oom_kills_total": 3.0 + (second >= 10)}, 20)) == {"HostOomKill"}


def test_a_disk_that_is_full_and_one_that_will_be() -> None:
    def of_disk(free: Callable[[float], float], hours: float) -> set[str]:
        engine, found = Engine(), list[Change]()
        for second in range(0, int(hours * 3600), 60):
            engine.disk(BEGAN + second, {"size_bytes": 1e12, "free_bytes": free(second)}, "/data")
            found += engine.tick(BEGAN + second)
        return kinds(found)

    assert of_disk(lambda second: 2e10, 0.1) == {"HostDiskFull"}
    assert of_disk(lambda second: 3e11 - second * 5e6, 3) == {"HostDiskFillingUp"}
    assert of_disk(lambda second: 3e11 - (1e11 if second > 3600 else 0), 8) == set()
    assert of_disk(lambda second: 3e11 - (second % 3600) * 2e7, 8) == set()


def test_a_source_that_does_not_answer_and_records_that_are_lost() -> None:
    engine, found = Engine(), list[Change]()
    for second in range(0, 90, 2):
        engine.source(BEGAN + second, "nvml", is_up=False)
        engine.journal(BEGAN + second, 4.0 if second > 30 else 0.0)
        found += engine.tick(BEGAN + second)
    assert kinds(found) == {"SourceDown", "JournalErrors"}
    assert all(None not in (one.finding.value, one.finding.threshold) for one in found)
