"""Which NVML call fills which fields, by how often it is worth asking.

A probe takes a device handle and returns what one call told: `{"power_draw_watts": 312.4}`.
"""

from collections.abc import Callable

import pynvml as nv

from trainvitals.catalog import THROTTLE_REASONS
from trainvitals.model import Labels, Tier, Value

Handle = object
Values = dict[str, Value]
Probe = Callable[[Handle], Values]

MIB = 2**20
_ALL_LINKS = 0xFFFFFFFF
_CLOCKS = (("graphics", nv.NVML_CLOCK_GRAPHICS), ("sm", nv.NVML_CLOCK_SM), ("memory", nv.NVML_CLOCK_MEM))
_NVLINK_ERRORS = (("replay", nv.NVML_NVLINK_ERROR_DL_REPLAY), ("recovery", nv.NVML_NVLINK_ERROR_DL_RECOVERY),
                  ("crc_flit", nv.NVML_NVLINK_ERROR_DL_CRC_FLIT),
                  ("crc_data", nv.NVML_NVLINK_ERROR_DL_CRC_DATA))  # fmt: skip
_REASON_BITS = tuple(zip((1, 2, 4, 8, 16, 32, 64, 128, 256), THROTTLE_REASONS, strict=True))

# field id, scope, name, factor: read together in one call
_FIELD_VALUES = (
    (nv.NVML_FI_DEV_MEMORY_TEMP, 0, "memory_temperature_celsius", 1.0),
    (nv.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, 0, "recovery_action", 1.0),
    (nv.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX, _ALL_LINKS, "nvlink_bytes_total_receive", 1024.0),
    (nv.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, _ALL_LINKS, "nvlink_bytes_total_transmit", 1024.0),
    (nv.NVML_FI_DEV_PERF_POLICY_POWER, 0, "throttle_seconds_total_power", 1e-9),
    (nv.NVML_FI_DEV_PERF_POLICY_THERMAL, 0, "throttle_seconds_total_thermal", 1e-9),
    (nv.NVML_FI_DEV_PERF_POLICY_SYNC_BOOST, 0, "throttle_seconds_total_sync_boost", 1e-9),
    (nv.NVML_FI_DEV_PERF_POLICY_BOARD_LIMIT, 0, "throttle_seconds_total_board_limit", 1e-9),
    (nv.NVML_FI_DEV_PERF_POLICY_LOW_UTILIZATION, 0, "throttle_seconds_total_low_utilization", 1e-9),
    (nv.NVML_FI_DEV_PERF_POLICY_RELIABILITY, 0, "throttle_seconds_total_reliability", 1e-9),
    (nv.NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN, 0, "throttle_seconds_total_sw_thermal_slowdown", 1e-9),
    (nv.NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN, 0, "throttle_seconds_total_hw_thermal_slowdown", 1e-9),
    (nv.NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN, 0, "throttle_seconds_total_hw_power_brake", 1e-9),
)
_FIELD_IDS = [(number, scope) for number, scope, _, _ in _FIELD_VALUES]
_VALUE_MEMBER = {nv.NVML_VALUE_TYPE_DOUBLE: "dVal", nv.NVML_VALUE_TYPE_UNSIGNED_INT: "uiVal",
                 nv.NVML_VALUE_TYPE_UNSIGNED_LONG: "ulVal", nv.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG: "ullVal",
                 nv.NVML_VALUE_TYPE_SIGNED_LONG_LONG: "sllVal"}  # fmt: skip


def text(value: str | bytes) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _one(name: str, call: Callable[..., float], *arguments: int, factor: float = 1.0) -> Probe:
    """A probe of a call that returns one number."""

    def probe(handle: Handle) -> Values:
        return {name: call(handle, *arguments) * factor}

    return probe


def _utilization(handle: Handle) -> Values:
    rates = nv.nvmlDeviceGetUtilizationRates(handle)
    return {"utilization_percent": float(rates.gpu), "memory_controller_utilization_ratio": rates.memory / 100}


def _memory(handle: Handle) -> Values:
    """Version 2 leaves out what the driver keeps for itself, as nvidia-smi does."""
    try:
        memory = nv.nvmlDeviceGetMemoryInfo(handle, version=nv.nvmlMemory_v2)
    except (nv.NVMLError_FunctionNotFound, nv.NVMLError_ArgumentVersionMismatch):
        memory = nv.nvmlDeviceGetMemoryInfo(handle)
    return {"memory_used_mb": memory.used / MIB, "memory_total_mb": memory.total / MIB}


def _throttle(handle: Handle) -> Values:
    try:
        bits = nv.nvmlDeviceGetCurrentClocksEventReasons(handle)
    except nv.NVMLError_FunctionNotFound:
        bits = nv.nvmlDeviceGetCurrentClocksThrottleReasons(handle)
    return {"throttle_active": tuple(name for bit, name in _REASON_BITS if bits & bit)}


def _coder(kind: str, call: Callable[[Handle], list[int]]) -> Probe:
    def probe(handle: Handle) -> Values:
        return {f"{kind}_utilization_ratio": call(handle)[0] / 100}

    return probe


def _field_values(handle: Handle) -> Values:
    answers = nv.nvmlDeviceGetFieldValues(handle, _FIELD_IDS)
    values: Values = {}
    for (_, _, name, factor), answer in zip(_FIELD_VALUES, answers, strict=True):
        if answer.nvmlReturn == nv.NVML_SUCCESS:
            member = _VALUE_MEMBER.get(answer.valueType, "ullVal")
            values[name] = getattr(answer.value, member) * factor
    return values


def _pcie_throughput(name: str, counter: int) -> Probe:
    call = nv.nvmlDeviceGetPcieThroughput
    return _one(f"pcie_throughput_bytes_per_second_{name}", call, counter, factor=1024.0)


def _nvlinks(handle: Handle) -> Values:
    """Links are asked by number until one is not there. Errors are summed over those that are up."""
    present, up = 0, []
    for link in range(nv.NVML_NVLINK_MAX_LINKS):
        try:
            active = nv.nvmlDeviceGetNvLinkState(handle, link)
        except (nv.NVMLError_InvalidArgument, nv.NVMLError_NotSupported):
            break
        present += 1
        if active:
            up.append(link)
    if not present:
        raise nv.NVMLError(nv.NVML_ERROR_NOT_SUPPORTED)
    return {"nvlink_links": float(present), "nvlink_links_active": float(len(up)), **_nvlink_errors(handle, up)}


def _nvlink_errors(handle: Handle, links: list[int]) -> Values:
    values: Values = {}
    for name, counter in _NVLINK_ERRORS:
        try:
            counts = [nv.nvmlDeviceGetNvLinkErrorCounter(handle, link, counter) for link in links]
        except (nv.NVMLError_NotSupported, nv.NVMLError_InvalidArgument):
            continue
        values[f"nvlink_errors_total_{name}"] = float(sum(counts))
    return values


def _ecc(scope: str, counter: int, kind: str, error: int) -> Probe:
    return _one(f"ecc_{scope}_errors_total_{kind}", nv.nvmlDeviceGetTotalEccErrors, error, counter)


def _retired(name: str, cause: int) -> Probe:
    def probe(handle: Handle) -> Values:
        return {f"retired_pages_{name}": float(len(nv.nvmlDeviceGetRetiredPages(handle, cause)))}

    return probe


def _remapped(handle: Handle) -> Values:
    corrected, uncorrected, pending, failed = nv.nvmlDeviceGetRemappedRows(handle)
    return {"remapped_rows_corrected": float(corrected), "remapped_rows_uncorrected": float(uncorrected),
            "remapped_rows_pending": float(pending), "remapped_rows_failed": float(failed)}  # fmt: skip


def processes(handle: Handle) -> list[tuple[int, int | None]]:
    """The number of each process that computes, and the memory that it holds: unknown where the driver does not tell
    (Windows, some containers). One that has several MIG instances comes several times."""
    return [(process.pid, process.usedGpuMemory) for process in nv.nvmlDeviceGetComputeRunningProcesses(handle)]


def _ecc_mode(handle: Handle) -> Values:
    return {"ecc_enabled": float(nv.nvmlDeviceGetEccMode(handle)[0])}


def _mig(handle: Handle) -> Values:
    return {"mig_enabled": float(nv.nvmlDeviceGetMigMode(handle)[0])}


def identity(handle: Handle) -> Labels:
    """What the device is; empty where it does not say."""
    return (("name", _said(nv.nvmlDeviceGetName, handle)),
            ("pci_bus_id", _said(lambda h: nv.nvmlDeviceGetPciInfo(h).busId, handle)),
            ("driver_version", _said(nv.nvmlSystemGetDriverVersion)),
            ("cuda_version", _said(_cuda_version)),
            ("vbios_version", _said(nv.nvmlDeviceGetVbiosVersion, handle)))  # fmt: skip


def _said(call: Callable[..., str | bytes], *arguments: Handle) -> str:
    try:
        return text(call(*arguments))
    except nv.NVMLError:
        return ""


def _cuda_version() -> str:
    number = nv.nvmlSystemGetCudaDriverVersion_v2()
    return f"{number // 1000}.{number % 1000 // 10}"


PROBES: dict[Tier, tuple[Probe, ...]] = {
    "fast": (
        _utilization,
        _memory,
        _one("temperature_celsius", nv.nvmlDeviceGetTemperature, nv.NVML_TEMPERATURE_GPU, factor=1.0),
        _one("power_draw_watts", nv.nvmlDeviceGetPowerUsage, factor=1e-3),
        _one("fan_speed_percent", nv.nvmlDeviceGetFanSpeed),
        *(_one(f"clock_hertz_{name}", nv.nvmlDeviceGetClockInfo, kind, factor=1e6) for name, kind in _CLOCKS),
        _throttle,
        _one("performance_state", nv.nvmlDeviceGetPerformanceState),
        _one("energy_joules_total", nv.nvmlDeviceGetTotalEnergyConsumption, factor=1e-3),
    ),
    "slow": (
        _field_values,
        _coder("encoder", nv.nvmlDeviceGetEncoderUtilization),
        _coder("decoder", nv.nvmlDeviceGetDecoderUtilization),
        _one("pcie_generation", nv.nvmlDeviceGetCurrPcieLinkGeneration),
        _one("pcie_width", nv.nvmlDeviceGetCurrPcieLinkWidth),
        _pcie_throughput("receive", nv.NVML_PCIE_UTIL_RX_BYTES),
        _pcie_throughput("transmit", nv.NVML_PCIE_UTIL_TX_BYTES),
        _one("pcie_replays_total", nv.nvmlDeviceGetPcieReplayCounter),
        _nvlinks,
        *(
            _ecc(scope, counter, kind, error)
            for scope, counter in (("volatile", nv.NVML_VOLATILE_ECC), ("aggregate", nv.NVML_AGGREGATE_ECC))
            for kind, error in (
                ("corrected", nv.NVML_MEMORY_ERROR_TYPE_CORRECTED),
                ("uncorrected", nv.NVML_MEMORY_ERROR_TYPE_UNCORRECTED),
            )
        ),
        _retired("single_bit", nv.NVML_PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS),
        _retired("double_bit", nv.NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR),
        _one("retired_pages_pending", nv.nvmlDeviceGetRetiredPagesPendingStatus),
        _remapped,
    ),
    "rare": (
        *(_one(f"clock_max_hertz_{name}", nv.nvmlDeviceGetMaxClockInfo, kind, factor=1e6) for name, kind in _CLOCKS),
        _one("power_limit_watts", nv.nvmlDeviceGetEnforcedPowerLimit, factor=1e-3),
        _one("power_limit_default_watts", nv.nvmlDeviceGetPowerManagementDefaultLimit, factor=1e-3),
        _one("temperature_slowdown_celsius", nv.nvmlDeviceGetTemperatureThreshold,
             nv.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN),
        _one("temperature_shutdown_celsius", nv.nvmlDeviceGetTemperatureThreshold,
             nv.NVML_TEMPERATURE_THRESHOLD_SHUTDOWN),
        _one("pcie_generation_max", nv.nvmlDeviceGetMaxPcieLinkGeneration),
        _one("pcie_width_max", nv.nvmlDeviceGetMaxPcieLinkWidth),
        _ecc_mode,
        _mig,
    ),
}  # fmt: skip
