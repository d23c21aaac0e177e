"""A node as its agent records it: GPU lines, host lines, events, and how many GPUs it ever saw.

Node(gpus=2, seconds=600, busy=training.is_busy).write(root)   ->  root/gpu/node-a/gpu_metrics_….jsonl
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.detect.scenarios.lines import LineFile, write_json
from tests.detect.scenarios.training import T0, Training, uuid
from trainvitals.journal.layout import stamped
from trainvitals.journal.record import timestamp_at

Values = dict[str, Any]
# Changes what a GPU, or the host, tells: seconds since the start, GPU, values.
GpuEdit = Callable[[float, int, Values], None]
HostEdit = Callable[[float, Values], None]
GIVEN = frozenset(("utilization_percent", "memory_used_mb", "memory_total_mb", "memory_percent",
                   "temperature_celsius", "power_draw_watts", "fan_speed_percent"))  # fmt: skip
SLOW_SECONDS = 10.0
GIB = 2.0**30
HOST_MEMORY, DISK = 512 * GIB, 3500 * GIB


@dataclass(frozen=True)
class Model:
    """What a GPU is; `warm` how hot it becomes under load."""

    memory_mb: float = 81559.0
    idle_watts: float = 70.0
    limit_watts: float = 700.0
    warm: float = 62.0
    slowdown: float = 87.0
    pcie: float = 5.0
    links: float = 18.0
    memory_temperature: bool = True
    ecc: bool = True


H100 = Model()
A100 = Model(limit_watts=400.0, warm=58.0, slowdown=92.0, pcie=4.0, links=12.0, idle_watts=55.0)
# A passively cooled inference card, and one for gamers: no NVLink, no ECC, no memory temperature.
T4 = Model(15360.0, 10.0, 70.0, 66.0, 96.0, 3.0, 0.0, False)
RTX = Model(24564.0, 20.0, 450.0, 68.0, 98.0, 4.0, 0.0, False, False)


@dataclass
class Node:
    host: str = "node-a"
    gpus: int = 2
    seconds: float = 600.0
    tick: float = 2.0
    start: float = T0
    seed: int = 0
    model: Model = H100
    memory_share: float = 0.76
    # Whether the GPUs compute at a time of the clock, and whether somebody holds their memory.
    busy: Callable[[float], bool] = lambda when: True
    held: Callable[[float], bool] = lambda when: True
    gpu_edits: tuple[GpuEdit, ...] = ()
    host_edits: tuple[HostEdit, ...] = ()
    # A GPU's line, or the host's (None), that is not there.
    silent: Callable[[float, int | None], bool] = lambda since, gpu: False
    events: tuple[tuple[float, Values], ...] = ()
    expected_gpus: int | None = None
    has_gpu_lines: bool = True
    host_tick: float = 0.0
    _told: dict[object, Values] = field(default_factory=dict, repr=False)

    def write(self, root: Path) -> None:
        folder = root / "gpu" / self.host
        write_json(folder / "gpus.json", {"most": self.gpus if self.expected_gpus is None else self.expected_gpus})
        if self.has_gpu_lines:
            self._write_gpus(LineFile(folder / stamped("gpu_metrics", ".jsonl", self.start)))
        self._write_host(LineFile(folder / stamped("host_metrics", ".jsonl", self.start)))
        events = LineFile(folder / "events.jsonl")
        for since, event in sorted(self.events, key=lambda one: one[0]):
            events.add({"timestamp": timestamp_at(self.start + since), **event})
        events.close()
        self._told.clear()

    def _write_gpus(self, file: LineFile) -> None:
        rng = random.Random(f"gpus/{self.seed}")
        constants = [self._constants(gpu, rng) for gpu in range(self.gpus)]
        energy, since = [5.0e6] * self.gpus, 0.0
        while since <= self.seconds:
            when = self.start + since
            is_busy = self.busy(when)
            for gpu in range(self.gpus):
                values = constants[gpu] | self._moving(rng, is_busy, self.held(when), gpu)
                energy[gpu] += values["power_draw_watts"] * self.tick
                values["energy_joules_total"] = round(energy[gpu], 1)
                for edit in self.gpu_edits:
                    edit(since, gpu, values)
                if not self.silent(since, gpu):
                    values["memory_percent"] = round(100 * values["memory_used_mb"] / values["memory_total_mb"], 2)
                    file.add(self._changes(gpu, {"timestamp": timestamp_at(when), "gpu_index": gpu}, values))
            since += self.tick
        file.close()

    def _moving(self, rng: random.Random, is_busy: bool, is_held: bool, gpu: int) -> Values:
        """Heat follows power in a moment here: what matters is how high it is, not how it came there."""
        model = self.model
        effort = rng.uniform(0.84, 0.92) if is_busy else 0.02
        reasons = [] if is_busy else ["gpu_idle"]
        return {"utilization_percent": float(rng.randint(90, 99)) if is_busy else float(rng.random() < 0.05),
                "memory_used_mb": round(model.memory_mb * (self.memory_share if is_held else 0.006)) + 16.0 * gpu,
                "compute_processes": float(is_held),
                "temperature_celsius": float(round((model.warm if is_busy else 34) + gpu % 3 + rng.gauss(0, 0.6))),
                "power_draw_watts": round(model.idle_watts + (model.limit_watts - model.idle_watts) * effort, 1),
                "clock_hertz_sm": 1.98e9 if is_busy else 3.45e8,
                "pcie_generation": model.pcie if is_busy else 1.0, "throttle_active": reasons}  # fmt: skip

    def _constants(self, gpu: int, rng: random.Random) -> Values:
        model, corrected = self.model, float(rng.choice((0, 0, 2, 7)))
        values = {
            "memory_total_mb": model.memory_mb, "fan_speed_percent": None if model.links else 45.0,
            "clock_max_hertz_sm": 1.98e9, "power_limit_watts": model.limit_watts,
            "temperature_slowdown_celsius": model.slowdown, "temperature_shutdown_celsius": model.slowdown + 5,
            "pcie_generation_max": model.pcie, "pcie_width": 16.0, "pcie_width_max": 16.0,
            "pcie_replays_total": float(rng.choice((0, 0, 3))), "performance_state": 0.0,
            "memory_temperature_celsius": model.warm + 12 if model.memory_temperature else None,
            "remapped_rows_pending": 0.0, "remapped_rows_failed": 0.0, "remapped_rows_corrected": 0.0,
            "remapped_rows_uncorrected": 0.0, "recovery_action": 0.0,
            "compute_processes_memory_bytes": model.memory_mb * self.memory_share * 2.0**20,
        }  # fmt: skip
        if model.ecc:
            values |= {"ecc_enabled": 1.0, "ecc_volatile_errors_total_corrected": corrected,
                       "ecc_volatile_errors_total_uncorrected": 0.0,
                       "ecc_aggregate_errors_total_corrected": corrected + 4,
                       "ecc_aggregate_errors_total_uncorrected": 1.0}  # fmt: skip
        if model.links:
            values |= {"nvlink_links": model.links, "nvlink_links_active": model.links,
                       "nvlink_errors_total_replay": 0.0, "nvlink_errors_total_recovery": 0.0,
                       "nvlink_errors_total_crc_flit": 0.0, "nvlink_errors_total_crc_data": 0.0}  # fmt: skip
        known = {name: value for name, value in values.items() if value is not None}
        return known | {"uuid": uuid(self.host, gpu)}

    def _write_host(self, file: LineFile) -> None:
        rng = random.Random(f"host/{self.seed}")
        tick, since = self.host_tick or self.tick, 0.0
        while since <= self.seconds:
            when = self.start + since
            values = _host_values(rng, self.busy(when))
            for edit in self.host_edits:
                edit(since, values)
            values["memory_used_bytes"] = values["memory_total_bytes"] - values["memory_available_bytes"]
            if not self.silent(since, None):
                file.add(self._changes("host", {"timestamp": timestamp_at(when)}, values))
            since += tick
        file.close()

    def _changes(self, key: object, head: Values, values: Values) -> Values:
        """What a line holds: the given fields, and of the rest what is new."""
        before = self._told.get(key, {})
        line = {name: value for name, value in values.items() if name in GIVEN or before.get(name) != value}
        line |= {name: None for name in before if name not in values}
        self._told[key] = dict(values)
        return head | line


def _host_values(rng: random.Random, is_busy: bool) -> Values:
    cpu = rng.gauss(34, 4) if is_busy else rng.gauss(6, 1.5)
    return {"cpu_usage_percent": round(min(100.0, max(0.5, cpu)), 2), "cpu_steal_ratio": 0.0,
            "cpu_iowait_ratio": round(max(0.0, rng.gauss(0.012, 0.006)), 4), "memory_total_bytes": HOST_MEMORY,
            "memory_available_bytes": round(HOST_MEMORY * 0.66 * rng.uniform(0.998, 1.002)),
            "cpu_count": 96.0, "boot_timestamp_seconds": T0 - 864000.0, "load_average_1m": round(cpu, 1),
            "swap_total_bytes": 16 * GIB, "swap_used_bytes": 0.2 * GIB, "swap_bytes_total_in": 4.0e6,
            "swap_bytes_total_out": 2.1e8, "oom_kills_total": 0.0, "file_descriptors_used": 21000.0,
            "file_descriptors_max": 9.2e18}  # fmt: skip


def beside(training: Training, **settings: Any) -> Node:
    """The node of a run's first ranks, from shortly before the run to a while after."""
    span = training.ended - training.start + settings.pop("after", 30.0)
    settings.setdefault("gpus", min(training.ranks, 8))
    card = settings.get("model", H100).memory_mb
    training.memory = (round(0.6 * card), round(0.7 * card))
    return Node(start=training.start, seconds=span, busy=training.is_busy, host=training.hosts[0],
                held=lambda when: when <= training.ended, seed=training.seed, **settings)  # fmt: skip
