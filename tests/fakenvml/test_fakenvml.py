"""The stand-in answers pynvml as a real library would: what readings, failures, changes and events look like."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

pynvml = pytest.importorskip("pynvml")

from . import Scenario, build, environment, preload  # noqa: E402

pytestmark = pytest.mark.skipif(not shutil.which("gcc") or sys.platform != "linux", reason="needs gcc on Linux")

ALL_LINKS = 0xFFFFFFFF
XID = pynvml.nvmlEventTypeXidCriticalError


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = build(tmp_path_factory.mktemp("lib"))
    preload(made)
    return made


@pytest.fixture
def idle(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scenario]:
    """A scenario with the library not yet initialised, and shut down after the test."""
    scenario = Scenario(tmp_path / "scenario")
    monkeypatch.setenv("FAKENVML_SCENARIO", str(scenario.path))
    yield scenario
    with contextlib.suppress(pynvml.NVMLError_Uninitialized):
        while True:
            pynvml.nvmlShutdown()


@pytest.fixture
def scenario(idle: Scenario) -> Scenario:
    pynvml.nvmlInit()
    return idle


def gpu(index: int) -> Any:
    return pynvml.nvmlDeviceGetHandleByIndex(index)


def field(index: int, field_id: int, scope: int | None = None) -> Any:
    return pynvml.nvmlDeviceGetFieldValues(gpu(index), [field_id if scope is None else (field_id, scope)])[0]


def raises(error: str) -> Any:
    return pytest.raises(getattr(pynvml, f"NVMLError_{error}"))


@pytest.fixture
def event_set(scenario: Scenario) -> Iterator[Any]:
    made = pynvml.nvmlEventSetCreate()
    for index in range(pynvml.nvmlDeviceGetCount()):
        pynvml.nvmlDeviceRegisterEvents(gpu(index), XID, made)
    yield made
    pynvml.nvmlEventSetFree(made)


def test_a_call_before_init_is_refused(idle: Scenario) -> None:
    pynvml.nvmlInit()
    pynvml.nvmlShutdown()
    with raises("Uninitialized"):
        pynvml.nvmlDeviceGetCount()
    with raises("Uninitialized"):
        pynvml.nvmlShutdown()


def test_inits_are_counted(scenario: Scenario) -> None:
    pynvml.nvmlInit()
    pynvml.nvmlShutdown()
    assert pynvml.nvmlDeviceGetCount() == 8


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("DRIVER_NOT_LOADED", "DriverNotLoaded"),
        ("LIB_RM_VERSION_MISMATCH", "LibRmVersionMismatch"),
        ("NO_PERMISSION", "NoPermission"),
        ("UNKNOWN", "Unknown"),
        ("GPU_NOT_FOUND", "GpuNotFound"),
    ],
)
def test_init_fails_as_told(idle: Scenario, name: str, error: str) -> None:
    idle.write(f"init {name}")
    with raises(error):
        pynvml.nvmlInit()
    idle.write("init OK")
    pynvml.nvmlInit()


def test_init_takes_as_long_as_told(idle: Scenario) -> None:
    idle.write("init_delay_ms 60")
    before = time.monotonic()
    pynvml.nvmlInit()
    assert time.monotonic() - before >= 0.06


def test_a_driver_reload_needs_a_new_init_and_new_handles(scenario: Scenario) -> None:
    old = gpu(0)
    scenario.write("reload 1\ndriver 590.1")
    for call in (pynvml.nvmlDeviceGetCount, lambda: pynvml.nvmlDeviceGetTemperature(old, 0)):
        with raises("Unknown"):
            call()
    pynvml.nvmlInit()
    with raises("Unknown"):
        pynvml.nvmlDeviceGetCount()
    pynvml.nvmlShutdown()
    pynvml.nvmlShutdown()
    pynvml.nvmlInit()
    assert pynvml.nvmlSystemGetDriverVersion() == "590.1"
    with raises("InvalidArgument"):
        pynvml.nvmlDeviceGetTemperature(old, 0)
    assert pynvml.nvmlDeviceGetTemperature(gpu(0), 0) == 58


def test_a_mistake_in_the_scenario_is_loud(scenario: Scenario, capfd: pytest.CaptureFixture[str]) -> None:
    scenario.write("gpus 8\ngpu * temprature 61")
    with raises("InvalidState"):
        pynvml.nvmlDeviceGetCount()
    assert capfd.readouterr().err == "fakenvml: scenario line 2: there is no key 'temprature'\n"


def test_the_system_tells_its_versions(scenario: Scenario) -> None:
    scenario.write("driver 570.1\nnvml 12.570.1\ncuda 12080")
    assert pynvml.nvmlSystemGetDriverVersion() == "570.1"
    assert pynvml.nvmlSystemGetNVMLVersion() == "12.570.1"
    assert pynvml.nvmlSystemGetCudaDriverVersion() == pynvml.nvmlSystemGetCudaDriverVersion_v2() == 12080
    assert "python" in pynvml.nvmlSystemGetProcessName(os.getpid())
    assert pynvml.nvmlErrorString(28) == "GPU not found"


def test_a_gpu_is_found_in_every_way(scenario: Scenario) -> None:
    uuids = [pynvml.nvmlDeviceGetUUID(gpu(index)) for index in range(8)]
    assert len(set(uuids)) == 8
    pci = pynvml.nvmlDeviceGetPciInfo(gpu(5))
    assert (pci.busId, pci.busIdLegacy, pci.bus) == ("00000000:C3:00.0", "0000:C3:00.0", 0xC3)
    found = [
        pynvml.nvmlDeviceGetHandleByUUID(uuids[5]),
        pynvml.nvmlDeviceGetHandleByPciBusId("0000:c3:00.0"),
        pynvml.nvmlDeviceGetHandleBySerial(pynvml.nvmlDeviceGetSerial(gpu(5))),
    ]
    assert [pynvml.nvmlDeviceGetIndex(handle) for handle in found] == [5, 5, 5]
    with raises("NotFound"):
        pynvml.nvmlDeviceGetHandleByUUID("GPU-none")
    with raises("InvalidArgument"):
        gpu(8)


def test_a_gpu_tells_what_it_is(scenario: Scenario) -> None:
    scenario.set(1, "name", "NVIDIA Test 1")
    assert pynvml.nvmlDeviceGetName(gpu(0)) == "NVIDIA H100 80GB HBM3"
    assert pynvml.nvmlDeviceGetName(gpu(1)) == "NVIDIA Test 1"
    assert pynvml.nvmlDeviceGetMinorNumber(gpu(3)) == 3
    assert pynvml.nvmlDeviceGetVbiosVersion(gpu(3)) == "96.00.89.00.03"
    assert pynvml.nvmlDeviceGetBrand(gpu(0)) == pynvml.NVML_BRAND_NVIDIA
    assert pynvml.nvmlDeviceGetArchitecture(gpu(0)) == pynvml.NVML_DEVICE_ARCH_HOPPER
    assert pynvml.nvmlDeviceGetCudaComputeCapability(gpu(0)) == (9, 0)


@pytest.mark.parametrize("count", [0, 1, 64])
def test_there_may_be_none_to_64_gpus(scenario: Scenario, count: int) -> None:
    scenario.write(f"gpus {count}")
    assert pynvml.nvmlDeviceGetCount() == count
    assert len({pynvml.nvmlDeviceGetPciInfo(gpu(index)).busId for index in range(count)}) == count


def test_gpus_go_and_come(scenario: Scenario) -> None:
    last = gpu(7)
    scenario.write("gpus 7")
    with raises("GpuIsLost"):
        pynvml.nvmlDeviceGetTemperature(last, 0)
    with raises("InvalidArgument"):
        gpu(7)
    scenario.write("gpus 9")
    assert pynvml.nvmlDeviceGetTemperature(last, 0) == 65
    assert pynvml.nvmlDeviceGetTemperature(gpu(8), 0) == 66


def test_a_lost_gpu_leaves_the_others_alone(scenario: Scenario) -> None:
    lost = gpu(2)
    scenario.set(2, "lost")
    for call in (pynvml.nvmlDeviceGetUUID, pynvml.nvmlDeviceGetPowerUsage, pynvml.nvmlDeviceGetMemoryInfo):
        with raises("GpuIsLost"):
            call(lost)
    with raises("GpuIsLost"):
        gpu(2)
    assert pynvml.nvmlDeviceGetCount() == 8
    assert pynvml.nvmlDeviceGetPowerUsage(gpu(3)) == 616500
    scenario.set(2, "lost", 0)
    assert pynvml.nvmlDeviceGetPowerUsage(lost) == 615000


SINGLE: list[tuple[str, Callable[[Any], int]]] = [
    ("temperature", lambda handle: pynvml.nvmlDeviceGetTemperature(handle, 0)),
    ("temperature", lambda handle: pynvml.nvmlDeviceGetTemperatureV(handle, 0)),
    ("temperature_threshold_shutdown", lambda handle: pynvml.nvmlDeviceGetTemperatureThreshold(handle, 0)),
    ("temperature_threshold_slowdown", lambda handle: pynvml.nvmlDeviceGetTemperatureThreshold(handle, 1)),
    ("temperature_threshold_mem_max", lambda handle: pynvml.nvmlDeviceGetTemperatureThreshold(handle, 2)),
    ("temperature_threshold_gpu_max", lambda handle: pynvml.nvmlDeviceGetTemperatureThreshold(handle, 3)),
    ("margin_temperature", pynvml.nvmlDeviceGetMarginTemperature),
    ("utilization_gpu", lambda handle: pynvml.nvmlDeviceGetUtilizationRates(handle).gpu),
    ("utilization_memory", lambda handle: pynvml.nvmlDeviceGetUtilizationRates(handle).memory),
    ("encoder_utilization", lambda handle: pynvml.nvmlDeviceGetEncoderUtilization(handle)[0]),
    ("decoder_utilization", lambda handle: pynvml.nvmlDeviceGetDecoderUtilization(handle)[0]),
    ("jpg_utilization", lambda handle: pynvml.nvmlDeviceGetJpgUtilization(handle)[0]),
    ("ofa_utilization", lambda handle: pynvml.nvmlDeviceGetOfaUtilization(handle)[0]),
    ("encoder_sessions", lambda handle: pynvml.nvmlDeviceGetEncoderStats(handle)[0]),
    ("encoder_fps", lambda handle: pynvml.nvmlDeviceGetEncoderStats(handle)[1]),
    ("encoder_latency", lambda handle: pynvml.nvmlDeviceGetEncoderStats(handle)[2]),
    ("memory_total", lambda handle: pynvml.nvmlDeviceGetMemoryInfo(handle).total),
    ("memory_used", lambda handle: pynvml.nvmlDeviceGetMemoryInfo(handle, pynvml.nvmlMemory_v2).used),
    ("memory_reserved", lambda handle: pynvml.nvmlDeviceGetMemoryInfo(handle, pynvml.nvmlMemory_v2).reserved),
    ("bar1_total", lambda handle: pynvml.nvmlDeviceGetBAR1MemoryInfo(handle).bar1Total),
    ("bar1_used", lambda handle: pynvml.nvmlDeviceGetBAR1MemoryInfo(handle).bar1Used),
    ("power_usage", pynvml.nvmlDeviceGetPowerUsage),
    ("power_management_limit", pynvml.nvmlDeviceGetPowerManagementLimit),
    ("power_management_default_limit", pynvml.nvmlDeviceGetPowerManagementDefaultLimit),
    ("power_limit_min", lambda handle: pynvml.nvmlDeviceGetPowerManagementLimitConstraints(handle)[0]),
    ("power_limit_max", lambda handle: pynvml.nvmlDeviceGetPowerManagementLimitConstraints(handle)[1]),
    ("enforced_power_limit", pynvml.nvmlDeviceGetEnforcedPowerLimit),
    ("total_energy_consumption", pynvml.nvmlDeviceGetTotalEnergyConsumption),
    ("fan_speed", pynvml.nvmlDeviceGetFanSpeed),
    ("fan_speed", lambda handle: pynvml.nvmlDeviceGetFanSpeed_v2(handle, 1)),
    ("num_fans", pynvml.nvmlDeviceGetNumFans),
    ("clock_graphics", lambda handle: pynvml.nvmlDeviceGetClockInfo(handle, 0)),
    ("clock_sm", lambda handle: pynvml.nvmlDeviceGetClockInfo(handle, 1)),
    ("clock_memory", lambda handle: pynvml.nvmlDeviceGetClockInfo(handle, 2)),
    ("clock_video", lambda handle: pynvml.nvmlDeviceGetClockInfo(handle, 3)),
    ("max_clock_sm", lambda handle: pynvml.nvmlDeviceGetMaxClockInfo(handle, 1)),
    ("applications_clock_memory", lambda handle: pynvml.nvmlDeviceGetApplicationsClock(handle, 2)),
    ("performance_state", pynvml.nvmlDeviceGetPerformanceState),
    ("clocks_event_reasons", pynvml.nvmlDeviceGetCurrentClocksEventReasons),
    ("clocks_event_reasons", pynvml.nvmlDeviceGetCurrentClocksThrottleReasons),
    ("supported_clocks_event_reasons", pynvml.nvmlDeviceGetSupportedClocksEventReasons),
    ("supported_clocks_event_reasons", pynvml.nvmlDeviceGetSupportedClocksThrottleReasons),
    ("violation_power", lambda handle: pynvml.nvmlDeviceGetViolationStatus(handle, 0).violationTime),
    ("violation_total_base_clocks", lambda handle: pynvml.nvmlDeviceGetViolationStatus(handle, 11).violationTime),
    ("persistence_mode", pynvml.nvmlDeviceGetPersistenceMode),
    ("compute_mode", pynvml.nvmlDeviceGetComputeMode),
    ("display_active", pynvml.nvmlDeviceGetDisplayActive),
    ("display_mode", pynvml.nvmlDeviceGetDisplayMode),
    ("accounting_mode", pynvml.nvmlDeviceGetAccountingMode),
    ("pcie_link_generation", pynvml.nvmlDeviceGetCurrPcieLinkGeneration),
    ("pcie_link_width", pynvml.nvmlDeviceGetCurrPcieLinkWidth),
    ("max_pcie_link_generation", pynvml.nvmlDeviceGetMaxPcieLinkGeneration),
    ("gpu_max_pcie_link_generation", pynvml.nvmlDeviceGetGpuMaxPcieLinkGeneration),
    ("max_pcie_link_width", pynvml.nvmlDeviceGetMaxPcieLinkWidth),
    ("pcie_throughput_tx", lambda handle: pynvml.nvmlDeviceGetPcieThroughput(handle, 0)),
    ("pcie_throughput_rx", lambda handle: pynvml.nvmlDeviceGetPcieThroughput(handle, 1)),
    ("pcie_replay_counter", pynvml.nvmlDeviceGetPcieReplayCounter),
    ("nvlink_version", lambda handle: pynvml.nvmlDeviceGetNvLinkVersion(handle, 0)),
    ("nvlink_replay_errors", lambda handle: pynvml.nvmlDeviceGetNvLinkErrorCounter(handle, 0, 0)),
    ("nvlink_ecc_data_errors", lambda handle: pynvml.nvmlDeviceGetNvLinkErrorCounter(handle, 0, 4)),
    ("ecc_current", lambda handle: pynvml.nvmlDeviceGetEccMode(handle)[0]),
    ("ecc_pending", lambda handle: pynvml.nvmlDeviceGetEccMode(handle)[1]),
    ("ecc_dram_uncorrected_volatile", lambda handle: pynvml.nvmlDeviceGetTotalEccErrors(handle, 1, 0)),
    ("ecc_sram_uncorrected_aggregate", lambda handle: pynvml.nvmlDeviceGetTotalEccErrors(handle, 1, 1)),
    ("ecc_dram_corrected_aggregate", lambda handle: pynvml.nvmlDeviceGetMemoryErrorCounter(handle, 0, 1, 2)),
    ("ecc_sram_corrected_volatile", lambda handle: pynvml.nvmlDeviceGetMemoryErrorCounter(handle, 0, 0, 7)),
    ("retired_pages_sbe", lambda handle: len(pynvml.nvmlDeviceGetRetiredPages(handle, 0))),
    ("retired_pages_dbe", lambda handle: len(pynvml.nvmlDeviceGetRetiredPages_v2(handle, 1))),
    ("retired_pages_pending", pynvml.nvmlDeviceGetRetiredPagesPendingStatus),
    ("remapped_correctable", lambda handle: pynvml.nvmlDeviceGetRemappedRows(handle)[0]),
    ("remapped_failure", lambda handle: pynvml.nvmlDeviceGetRemappedRows(handle)[3]),
    ("supported_event_types", pynvml.nvmlDeviceGetSupportedEventTypes),
]


def test_every_reading_can_be_set_on_one_gpu(scenario: Scenario) -> None:
    """All in one scenario, since each value differs from the others: a mixed up pair of keys shows."""
    keys = list(dict.fromkeys(key for key, _ in SINGLE))
    expected = {key: 200 + place for place, key in enumerate(keys)}
    before = {place: call(gpu(2)) for place, (_, call) in enumerate(SINGLE)}
    scenario.write("".join(f"gpu 3 {key} {amount}\n" for key, amount in expected.items()))
    assert [(key, call(gpu(3))) for key, call in SINGLE] == [(key, expected[key]) for key, _ in SINGLE]
    assert all(call(gpu(2)) >= before[place] for place, (_, call) in enumerate(SINGLE))


def test_memory_adds_up_in_both_versions(scenario: Scenario) -> None:
    first = pynvml.nvmlDeviceGetMemoryInfo(gpu(1))
    second = pynvml.nvmlDeviceGetMemoryInfo(gpu(1), pynvml.nvmlMemory_v2)
    assert first.total == second.total == first.free + first.used
    assert second.total == second.free + second.used + second.reserved
    assert first.used == second.used + second.reserved


def test_any_call_fails_as_told(scenario: Scenario) -> None:
    scenario.write(
        "gpu 3 unsupported fan_speed\ngpu 3 error power_usage RESET_REQUIRED\ngpu * unsupported memory_info\n"
        "gpu 3 error clocks_event_reasons FUNCTION_NOT_FOUND\ngpu 3 error clock_video NOT_FOUND"
    )
    handle = gpu(3)
    for call, error in (
        (pynvml.nvmlDeviceGetFanSpeed, "NotSupported"),
        (pynvml.nvmlDeviceGetPowerUsage, "ResetRequired"),
        (pynvml.nvmlDeviceGetMemoryInfo, "NotSupported"),
        (pynvml.nvmlDeviceGetCurrentClocksEventReasons, "FunctionNotFound"),
        (lambda handle: pynvml.nvmlDeviceGetClockInfo(handle, 3), "NotFound"),
        (pynvml.nvmlEventSetWait_v3, "FunctionNotFound"),
    ):
        with raises(error):
            call(*([handle, None] if call is pynvml.nvmlEventSetWait_v3 else [handle]))
    assert pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle) == 0
    assert pynvml.nvmlDeviceGetFanSpeed(gpu(4)) == 46
    scenario.set(3, "error", "power_usage OK")
    assert pynvml.nvmlDeviceGetPowerUsage(handle) == 616500


def test_a_slow_gpu_delays_nobody_else(scenario: Scenario) -> None:
    slow, other = gpu(3), gpu(4)
    scenario.set(3, "delay_ms", 300)
    with ThreadPoolExecutor(1) as pool:
        before = time.monotonic()
        waiting = pool.submit(pynvml.nvmlDeviceGetTemperature, slow, 0)
        while not waiting.running():
            time.sleep(0.001)
        assert pynvml.nvmlDeviceGetTemperature(other, 0) == 62
        scenario.set(4, "temperature", 70)
        assert pynvml.nvmlDeviceGetTemperature(other, 0) == 70
        assert time.monotonic() - before < 0.25
        assert waiting.result() == 61
        assert time.monotonic() - before >= 0.3


def test_a_hang_ends_with_its_delay(scenario: Scenario) -> None:
    hanging = gpu(0)
    scenario.set(0, "delay", "power_usage 3600000")
    assert pynvml.nvmlDeviceGetTemperature(hanging, 0) == 58
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(pynvml.nvmlDeviceGetPowerUsage, hanging)
        time.sleep(0.03)
        assert not waiting.done()
        scenario.set(0, "delay", "power_usage 0")
        assert waiting.result(timeout=2) == 612000


def test_counters_grow_and_never_jump_back(scenario: Scenario) -> None:
    first = pynvml.nvmlDeviceGetTotalEnergyConsumption(gpu(0))
    time.sleep(0.05)
    second = pynvml.nvmlDeviceGetTotalEnergyConsumption(gpu(0))
    assert 25_000 < second - first < 500_000, "612 W for 50 ms and a little"
    scenario.set(0, "power_usage", 1000)
    third = pynvml.nvmlDeviceGetTotalEnergyConsumption(gpu(0))
    time.sleep(0.02)
    assert second <= third <= pynvml.nvmlDeviceGetTotalEnergyConsumption(gpu(0)) < third + 1000


def test_a_counter_set_to_a_value_stands_still_unless_it_has_a_rate(scenario: Scenario) -> None:
    scenario.set(0, "pcie_replay_counter", 41)
    assert pynvml.nvmlDeviceGetPcieReplayCounter(gpu(0)) == 41
    scenario.set(0, "pcie_replay_counter_rate", 1e6)
    before = pynvml.nvmlDeviceGetPcieReplayCounter(gpu(0))
    time.sleep(0.005)
    assert pynvml.nvmlDeviceGetPcieReplayCounter(gpu(0)) - before >= 5000


def test_a_driver_reload_resets_counters(scenario: Scenario) -> None:
    scenario.write("gpu 0 violation_power_rate 1e12")
    scenario.write("reload 1\ngpu 0 violation_power_rate 0")
    pynvml.nvmlShutdown()
    pynvml.nvmlInit()
    assert pynvml.nvmlDeviceGetViolationStatus(gpu(0), 0).violationTime == 0


def test_field_values_answer_each_for_itself(scenario: Scenario) -> None:
    scenario.set(1, "unsupported", "memory_temperature")
    fields = [pynvml.NVML_FI_DEV_MEMORY_TEMP, pynvml.NVML_FI_DEV_POWER_INSTANT, pynvml.NVML_FI_DEV_C2C_LINK_COUNT]
    values = pynvml.nvmlDeviceGetFieldValues(gpu(1), fields)
    assert [value.nvmlReturn for value in values] == [3, 0, 3]
    assert (values[1].value.uiVal, values[1].valueType) == (613500, pynvml.NVML_VALUE_TYPE_UNSIGNED_INT)
    assert abs(values[1].timestamp / 1e6 - time.time()) < 1
    assert field(2, pynvml.NVML_FI_DEV_MEMORY_TEMP).value.uiVal == 68
    assert field(2, pynvml.NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION).value.ullVal > 0


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("PERF_POLICY_POWER", "violation_power"),
        ("PERF_POLICY_TOTAL_BASE_CLOCKS", "violation_total_base_clocks"),
        ("CLOCKS_EVENT_REASON_SW_POWER_CAP", "violation_power"),
        ("CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN", "event_time_sw_thermal"),
        ("CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN", "event_time_hw_thermal"),
        ("CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN", "event_time_hw_power_brake"),
        ("NVLINK_REPLAY_ERROR_COUNT_TOTAL", "nvlink_replay_errors"),
        ("NVLINK_RECOVERY_ERROR_COUNT_TOTAL", "nvlink_recovery_errors"),
        ("NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", "nvlink_crc_flit_errors"),
        ("NVLINK_CRC_DATA_ERROR_COUNT_TOTAL", "nvlink_crc_data_errors"),
        ("NVLINK_LINK_COUNT", "nvlink_links"),
        ("PCIE_REPLAY_COUNTER", "pcie_replay_counter"),
        ("REMAPPED_COR", "remapped_correctable"),
        ("REMAPPED_UNC", "remapped_uncorrectable"),
        ("REMAPPED_PENDING", "remapped_pending"),
        ("REMAPPED_FAILURE", "remapped_failure"),
        ("RETIRED_SBE", "retired_pages_sbe"),
        ("RETIRED_DBE", "retired_pages_dbe"),
        ("RETIRED_PENDING", "retired_pages_pending"),
        ("POWER_AVERAGE", "power_usage"),
        ("GET_GPU_RECOVERY_ACTION", "gpu_recovery_action"),
        ("ECC_DBE_AGG_TOTAL", "ecc_sram_uncorrected_aggregate"),
    ],
)
def test_a_field_value_has_its_key(scenario: Scenario, name: str, key: str) -> None:
    scenario.set(6, key, 17)
    found = field(6, getattr(pynvml, f"NVML_FI_DEV_{name}"))
    assert (found.nvmlReturn, found.value.ullVal) == (0, 17)


def test_nvlink_bytes_are_spread_over_the_links(scenario: Scenario) -> None:
    scenario.set(0, "nvlink_data_tx", 1_000_000)
    sent = pynvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX
    links = [field(0, sent, link).value.ullVal for link in range(18)]
    assert field(0, sent, ALL_LINKS).value.ullVal == 1_000_000
    assert 1_000_000 - 18 <= sum(links) <= 1_000_000
    assert sorted(set(links)) == links
    assert field(0, sent, 18).nvmlReturn == pynvml.NVML_ERROR_INVALID_ARGUMENT


def test_a_link_that_is_down_shows(scenario: Scenario) -> None:
    scenario.set(0, "nvlink_down", "0x8")
    assert [pynvml.nvmlDeviceGetNvLinkState(gpu(0), link) for link in range(5)] == [1, 1, 1, 0, 1]
    assert field(0, pynvml.NVML_FI_DEV_NVLINK_GET_STATE, 3).value.uiVal == 0
    assert pynvml.nvmlDeviceGetNvLinkRemotePciInfo(gpu(0), 1).busId == "00000000:08:00.0"
    with raises("InvalidArgument"):
        pynvml.nvmlDeviceGetNvLinkState(gpu(0), 18)


def test_a_gpu_can_be_split(scenario: Scenario) -> None:
    scenario.set(1, "mig", 2)
    scenario.set(1, "processes", "11:100:1,12:200:2,13:?:2")
    assert pynvml.nvmlDeviceGetMigMode(gpu(0)) == [0, 0]
    assert pynvml.nvmlDeviceGetMaxMigDeviceCount(gpu(0)) == 0
    assert pynvml.nvmlDeviceGetMigMode(gpu(1)) == [1, 1]
    assert pynvml.nvmlDeviceGetMaxMigDeviceCount(gpu(1)) == 7
    parts = [pynvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu(1), index) for index in range(2)]
    assert [pynvml.nvmlDeviceGetGpuInstanceId(part) for part in parts] == [1, 2]
    assert [pynvml.nvmlDeviceGetComputeInstanceId(part) for part in parts] == [0, 0]
    assert [pynvml.nvmlDeviceIsMigDeviceHandle(part).value for part in parts] == [1, 1]
    assert len({pynvml.nvmlDeviceGetUUID(part) for part in parts}) == 2
    assert parts[0] and pynvml.nvmlDeviceGetUUID(parts[0]).startswith("MIG-")
    used = [pynvml.nvmlDeviceGetMemoryInfo(part, pynvml.nvmlMemory_v2).used for part in parts]
    assert used[1] - used[0] == 1 << 20
    assert pynvml.nvmlDeviceGetAttributes(parts[0]).multiprocessorCount == 66
    parent = pynvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(parts[1])
    assert pynvml.nvmlDeviceGetIndex(parent) == 1
    pids = [[process.pid for process in pynvml.nvmlDeviceGetComputeRunningProcesses(part)] for part in parts]
    assert pids == [[11], [12, 13]]
    by_uuid = pynvml.nvmlDeviceGetHandleByUUID(pynvml.nvmlDeviceGetUUID(parts[1]))
    assert pynvml.nvmlDeviceGetIndex(by_uuid) == 1


def test_what_a_split_gpu_does_not_answer(scenario: Scenario) -> None:
    scenario.set(1, "mig", 2)
    part = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu(1), 0)
    for call in (pynvml.nvmlDeviceGetPowerUsage, pynvml.nvmlDeviceGetUtilizationRates):
        with raises("NotSupported"):
            call(part)
    with raises("NotSupported"):
        pynvml.nvmlDeviceGetUtilizationRates(gpu(1))
    with raises("NotFound"):
        pynvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu(1), 2)
    with raises("NotSupported"):
        pynvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu(0), 0)
    scenario.set(1, "mig", 0)
    with raises("InvalidArgument"):
        pynvml.nvmlDeviceGetMemoryInfo(part)


def test_processes_are_listed_by_kind(scenario: Scenario) -> None:
    assert pynvml.nvmlDeviceGetComputeRunningProcesses(gpu(0)) == []
    with raises("NotFound"):
        pynvml.nvmlDeviceGetProcessUtilization(gpu(0), 0)
    scenario.set(0, "processes", "4711:30000,4712:?")
    scenario.set(0, "graphics_processes", "12:80")
    scenario.set(0, "mps_processes", "13:90")
    processes = pynvml.nvmlDeviceGetComputeRunningProcesses(gpu(0))
    assert [(process.pid, process.usedGpuMemory) for process in processes] == [(4711, 30000 << 20), (4712, None)]
    assert [process.pid for process in pynvml.nvmlDeviceGetComputeRunningProcesses_v2(gpu(0))] == [4711, 4712]
    assert [process.pid for process in pynvml.nvmlDeviceGetGraphicsRunningProcesses(gpu(0))] == [12]
    assert [process.pid for process in pynvml.nvmlDeviceGetMPSComputeRunningProcesses(gpu(0))] == [13]
    samples = pynvml.nvmlDeviceGetProcessUtilization(gpu(0), 0)
    assert [(sample.pid, sample.smUtil) for sample in samples] == [(4711, 48), (4712, 48)]


def test_an_xid_is_delivered_once(scenario: Scenario, event_set: Any) -> None:
    scenario.xid(3, 79)
    scenario.set(3, "lost")
    event = pynvml.nvmlEventSetWait_v2(event_set, 1000)
    scenario.set(3, "lost", 0)
    assert (pynvml.nvmlDeviceGetIndex(event.device), event.eventType, event.eventData) == (3, XID, 79)
    before = time.monotonic()
    with raises("Timeout"):
        pynvml.nvmlEventSetWait_v2(event_set, 60)
    assert time.monotonic() - before >= 0.06


def test_an_xid_ends_a_wait(scenario: Scenario, event_set: Any) -> None:
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(pynvml.nvmlEventSetWait_v2, event_set, 5000)
        scenario.xid(0, 13)
        scenario.xid(1, 48)
        assert waiting.result(timeout=2).eventData == 13
    assert pynvml.nvmlEventSetWait_v2(event_set, 0).eventData == 48


def test_events_need_to_be_registered_for(scenario: Scenario) -> None:
    one = pynvml.nvmlEventSetCreate()
    pynvml.nvmlDeviceRegisterEvents(gpu(1), XID, one)
    scenario.xid(0, 13)
    with raises("Timeout"):
        pynvml.nvmlEventSetWait_v2(one, 0)
    with raises("NotSupported"):
        pynvml.nvmlDeviceRegisterEvents(gpu(1), 1 << 40, one)
    pynvml.nvmlEventSetFree(one)
    with raises("InvalidArgument"):
        pynvml.nvmlEventSetWait_v2(one, 0)


def test_waiting_fails_as_told(scenario: Scenario, event_set: Any) -> None:
    scenario.add("event_wait GPU_IS_LOST")
    with raises("GpuIsLost"):
        pynvml.nvmlEventSetWait_v2(event_set, 1000)


def test_threads_read_while_the_scenario_changes(scenario: Scenario) -> None:
    """Every GPU answers one of the two values its own scenario holds, never another GPU's."""
    handles = [gpu(index) for index in range(8)]
    done = threading.Event()

    def read(index: int) -> set[int]:
        seen = set()
        while not done.is_set():
            seen.add(pynvml.nvmlDeviceGetPowerUsage(handles[index]))
        return seen

    with ThreadPoolExecutor(8) as pool:
        readers = [pool.submit(read, index) for index in range(8)]
        for turn in range(10):
            scenario.write("".join(f"gpu {index} power_usage {1000 * index + turn % 2}\n" for index in range(8)))
        done.set()
    for index, reader in enumerate(readers):
        first = 612000 + 1500 * index
        assert reader.result() <= {first, 1000 * index, 1000 * index + 1}


def test_a_subprocess_finds_the_library_by_its_name(library: Path, tmp_path: Path) -> None:
    scenario = Scenario(tmp_path / "scenario", "gpus 3")
    program = "import pynvml; pynvml.nvmlInit(); print(pynvml.nvmlDeviceGetCount())"
    env = {**os.environ, **environment(library.parent, scenario.path)}
    shown = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True)
    assert shown.stdout == "3\n"


def test_it_is_compiled_once(library: Path) -> None:
    before = library.stat().st_mtime_ns
    assert build(library.parent).stat().st_mtime_ns == before
