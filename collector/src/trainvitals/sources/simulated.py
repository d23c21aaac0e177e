"""GPUs that are not there but move like ones that are: power follows load, heat follows power with a lag.

The same seed and scenario give the same course. A scenario is a name, or a function of the seconds
since the start that gives the name that holds then, which is how the demo changes phase.
"""

import math
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from trainvitals.clock import SYSTEM, Clock
from trainvitals.errors import DeviceLost, SettingError
from trainvitals.model import Event, Labels, Reading, Tier, Value

Schedule = Callable[[float], str]

IDLE_WATTS, LIMIT_WATTS = 70.0, 700.0
AMBIENT_CELSIUS, CELSIUS_PER_WATT = 28.0, 0.055
WARM_UP_SECONDS = 12.0
SLOWDOWN_CELSIUS, SHUTDOWN_CELSIUS = 87.0, 92.0
MEMORY_MB = 81559.0
SM_MAX_HERTZ, MEMORY_HERTZ = 1.98e9, 2.619e9
FAULT_AFTER_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Course:
    """What a scenario does to a GPU: how busy it is, how hard it works, what is wrong with it."""

    utilization: float
    effort: float
    memory_share: float
    swing: float = 3.0
    extra_celsius: float = 0.0
    clock_share: float = 1.0
    reasons: tuple[str, ...] = ()
    xid: int = 0
    lost: bool = False
    ecc: bool = False


COURSES: dict[str, Course] = {
    "healthy": Course(96, 0.92, 0.78),
    "hot": Course(97, 0.97, 0.78, extra_celsius=17.0),
    "throttled": Course(97, 0.62, 0.78, extra_celsius=36.0, clock_share=0.58,
                        reasons=("hw_slowdown", "hw_thermal_slowdown")),
    "ecc": Course(95, 0.90, 0.78, ecc=True),
    "xid79": Course(96, 0.92, 0.78, xid=79, lost=True),
    "lost": Course(96, 0.92, 0.78, lost=True),
    "idle": Course(0, 0.0, 0.42, swing=0.0, clock_share=0.17, reasons=("gpu_idle",)),
    "hang": Course(100, 0.08, 0.78, swing=0.0),
    "starved": Course(34, 0.30, 0.78, swing=28.0),
}  # fmt: skip
WHOLE_NODE = frozenset({"healthy", "starved", "idle", "hang"})


def course(scenario: str, index: int, count: int) -> Course:
    """A fault has one GPU, the last but one; what comes from the load has all of them."""
    if scenario in WHOLE_NODE or index == max(0, count - 2):
        return COURSES[scenario]
    return COURSES["healthy"]


class SimulatedGpu:
    def __init__(self, index: int, count: int, seed: int, schedule: Schedule, clock: Clock) -> None:
        self._random = random.Random(f"{seed}/{index}")
        self.index, self.errors = index, 0
        self.key = f"GPU-{self._random.getrandbits(128):032x}"
        self.labels: Labels = (("gpu", str(index)), ("uuid", self.key))
        self._count, self._schedule, self._clock = count, schedule, clock
        self._began = self._at = clock.monotonic()
        self._bias = self._random.uniform(-1.5, 1.5)
        self._celsius = AMBIENT_CELSIUS + CELSIUS_PER_WATT * IDLE_WATTS + self._bias
        self._watts, self._joules, self._utilization = IDLE_WATTS, 5.0e6, 0.0
        self._throttled_seconds = 0.0
        self._corrected = 0
        self.xids: set[int] = set()

    def read(self, tier: Tier) -> Sequence[Reading]:
        now = self._clock.now()
        state = self._advance()
        if tier == "fast":
            return [Reading("gpu", self.labels, self._fast(state), now)]
        if tier == "slow":
            return [Reading("gpu", self.labels, self._slow(state), now), self._process(state, now)]
        return [Reading("gpu", self.labels, dict(_LIMITS), now), self._identity(now)]

    def scenario_now(self) -> str:
        return self._schedule(self._clock.monotonic() - self._began)

    def is_faulty(self) -> bool:
        return self._clock.monotonic() - self._began >= FAULT_AFTER_SECONDS

    def _advance(self) -> Course:
        now = self._clock.monotonic()
        passed, self._at = now - self._at, now
        state = course(self.scenario_now(), self.index, self._count)
        if state.lost and self.is_faulty():
            raise DeviceLost("simulated", f"GPU {self.index} ({self.key}) fell off the bus", "this is a simulation")
        self._utilization = _clamp(self._random.gauss(state.utilization, state.swing), 0, 100)
        target = IDLE_WATTS + (LIMIT_WATTS - IDLE_WATTS) * state.effort * self._random.uniform(0.97, 1.03)
        self._watts += (target - self._watts) * (1 - math.exp(-passed / 1.5))
        warm = AMBIENT_CELSIUS + CELSIUS_PER_WATT * self._watts + state.extra_celsius + self._bias
        self._celsius += (warm - self._celsius) * (1 - math.exp(-passed / WARM_UP_SECONDS))
        self._joules += self._watts * passed
        self._throttled_seconds += passed if state.clock_share < 1 and state.effort else 0.0
        self._corrected += state.ecc and self._random.random() < passed
        return state

    def _fast(self, state: Course) -> dict[str, Value]:
        sm = SM_MAX_HERTZ * state.clock_share
        return {
            "utilization_percent": float(round(self._utilization)),
            "memory_used_mb": float(round(MEMORY_MB * state.memory_share + self.index * 16.0)),
            "memory_total_mb": MEMORY_MB,
            "temperature_celsius": float(round(self._celsius)),
            "power_draw_watts": round(self._watts, 3),
            "memory_controller_utilization_ratio": round(0.6 * self._utilization / 100, 2),
            "clock_hertz_graphics": sm,
            "clock_hertz_sm": sm,
            "clock_hertz_memory": MEMORY_HERTZ,
            "throttle_active": state.reasons,
            "performance_state": 0.0,
            "energy_joules_total": round(self._joules, 3),
        }

    def _slow(self, state: Course) -> dict[str, Value]:
        busy = self._utilization / 100
        uncorrected = 1.0 if state.ecc and self.is_faulty() else 0.0
        return {
            "throttle_seconds_total_power": 0.0,
            "throttle_seconds_total_thermal": round(self._throttled_seconds, 3),
            "throttle_seconds_total_hw_thermal_slowdown": round(self._throttled_seconds, 3),
            "memory_temperature_celsius": float(round(self._celsius + 9)),
            "encoder_utilization_ratio": 0.0,
            "decoder_utilization_ratio": 0.0,
            "pcie_generation": 5.0,
            "pcie_width": 16.0,
            "pcie_throughput_bytes_per_second_receive": round(busy * 2.1e9),
            "pcie_throughput_bytes_per_second_transmit": round(busy * 0.6e9),
            "pcie_replays_total": 0.0,
            "nvlink_links": 18.0,
            "nvlink_links_active": 18.0,
            "nvlink_bytes_total_receive": round(self._joules * 3.1e8),
            "nvlink_bytes_total_transmit": round(self._joules * 3.1e8),
            "nvlink_errors_total_replay": 0.0,
            "nvlink_errors_total_recovery": 0.0,
            "nvlink_errors_total_crc_flit": 0.0,
            "ecc_volatile_errors_total_corrected": float(self._corrected),
            "ecc_volatile_errors_total_uncorrected": uncorrected,
            "ecc_aggregate_errors_total_corrected": float(self._corrected),
            "ecc_aggregate_errors_total_uncorrected": uncorrected,
            "remapped_rows_corrected": 0.0,
            "remapped_rows_uncorrected": uncorrected,
            "remapped_rows_pending": uncorrected,
            "remapped_rows_failed": 0.0,
            "recovery_action": uncorrected,
            "compute_processes": 1.0,
            "compute_processes_memory_bytes": MEMORY_MB * state.memory_share * 2**20,
        }

    def _process(self, state: Course, now: float) -> Reading:
        labels = (*self.labels, ("pid", str(1000 + self.index)), ("user", "nobody"), ("command", "simulated trainer"))
        return Reading("process", labels, {"memory_bytes": MEMORY_MB * state.memory_share * 2**20}, now)

    def _identity(self, now: float) -> Reading:
        labels = (*self.labels, ("name", "Simulated H100 80GB"), ("pci_bus_id", f"00000000:{self.index + 1:02X}:00.0"),
                  ("driver_version", "simulated"), ("cuda_version", ""), ("vbios_version", ""))  # fmt: skip
        return Reading("gpu_info", labels, {"info": 1.0}, now)


_LIMITS: dict[str, Value] = {
    "clock_max_hertz_graphics": SM_MAX_HERTZ,
    "clock_max_hertz_sm": SM_MAX_HERTZ,
    "clock_max_hertz_memory": MEMORY_HERTZ,
    "power_limit_watts": LIMIT_WATTS,
    "power_limit_default_watts": LIMIT_WATTS,
    "temperature_slowdown_celsius": SLOWDOWN_CELSIUS,
    "temperature_shutdown_celsius": SHUTDOWN_CELSIUS,
    "pcie_generation_max": 5.0,
    "pcie_width_max": 16.0,
    "ecc_enabled": 1.0,
    "mig_enabled": 0.0,
    "mig_instances": 0.0,
}


class SimulatedSource:
    """`SimulatedSource(8, "throttled", seed=1)`"""

    name = "simulated"

    def __init__(self, count: int, scenario: str | Schedule = "healthy", seed: int = 0, clock: Clock = SYSTEM) -> None:
        if isinstance(scenario, str) and scenario not in COURSES:
            raise SettingError("--scenario", scenario, f"choose one of {', '.join(COURSES)}")
        schedule = scenario if callable(scenario) else lambda _: scenario
        self._clock = clock
        self._gpus = [SimulatedGpu(index, count, seed, schedule, clock) for index in range(count)]
        self.gpu_count = count

    def discover(self) -> Sequence[SimulatedGpu]:
        return self._gpus

    def wait_events(self, timeout: float) -> Sequence[Event]:
        time.sleep(timeout)
        return [event for gpu in self._gpus for event in self._new_xids(gpu)]

    def close(self) -> None:
        pass

    def _new_xids(self, gpu: SimulatedGpu) -> list[Event]:
        xid = course(gpu.scenario_now(), gpu.index, len(self._gpus)).xid
        if not xid:
            gpu.xids.clear()
        if not xid or xid in gpu.xids or not gpu.is_faulty():
            return []
        now = self._clock.now()
        gpu.xids.add(xid)
        return [Event("xid", gpu.labels, {"xid": xid}, now)]


def _clamp(value: float, low: float, high: float) -> float:
    return max(low, min(high, value))
