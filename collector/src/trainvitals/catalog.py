"""The one table of metrics: what exporter, journal, rules, dashboards and docs/metrics.md agree on.

A row is found by scope and field, the short name that readings and journal lines use:
    SERIES["gpu"]["clock_hertz_sm"]  ->  gpu_clock_hertz{gpu, uuid, clock="sm"}
Names are a public contract: rows are added, never renamed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from trainvitals.model import Tier

Kind = Literal["gauge", "counter", "histogram", "states"]

SCOPES: dict[str, tuple[str, ...]] = {
    "gpu": ("gpu", "uuid"),
    "gpu_info": ("gpu", "uuid", "name", "pci_bus_id", "driver_version", "cuda_version", "vbios_version"),
    "mig": ("gpu", "uuid", "mig"),
    "xid": ("gpu", "uuid", "xid"),
    # On page and terminal alone: numbers of processes are no labels for series.
    "process": ("gpu", "uuid", "pid", "user", "command"),
    "host": (), "core": ("cpu",),
    "filesystem": ("mountpoint",), "disk": ("device",), "network": ("interface",),
    "ray": (), "ray_resource": ("resource",),
    "run": ("run",), "run_info": ("run", "name", "framework", "world_size"),
    "rank": ("run", "rank"), "custom": ("run", "rank", "name"),
    "nonfinite": ("run", "rank", "field"),
    "rank_gpu": ("run", "rank", "gpu", "uuid"),
    "source": ("source",),
    "finding": ("kind", "severity", "run", "rank", "gpu", "uuid"),
    "agent": (), "build": ("version", "python_version"),
}  # fmt: skip
PREFIXES = {"gpu": "gpu_", "gpu_info": "gpu_", "mig": "gpu_mig_", "xid": "gpu_xid_", "host": "host_",
            "core": "host_", "filesystem": "host_filesystem_", "disk": "host_disk_",
            "network": "host_network_", "ray": "ray_cluster_",
            "ray_resource": "ray_cluster_resource_", "source": "trainvitals_source_", "finding": "trainvitals_",
            "agent": "trainvitals_", "build": "trainvitals_", "nonfinite": "training_"}  # fmt: skip
RUN_PREFIX = "training_"

THROTTLE_REASONS = ("gpu_idle", "applications_clocks_setting", "sw_power_cap", "hw_slowdown", "sync_boost",
                    "sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake",
                    "display_clock_setting")  # fmt: skip
THROTTLE_TIMES = ("power", "thermal", "sync_boost", "board_limit", "low_utilization", "reliability",
                  "sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake")  # fmt: skip
RUN_STATUSES = ("running", "finished", "crashed", "preempted", "killed")
PHASES = ("data_wait", "forward", "backward", "optimizer", "checkpoint", "evaluation", "other")
# Those that may keep a run from its next step for long: whoever waits for that is told as they begin.
LASTING_PHASES = ("checkpoint", "evaluation")
CLOCKS = ("graphics", "sm", "memory")
STEP_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)


class Split(NamedTuple):
    """One more label with a closed set of values; each value is a field of its own."""

    label: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Metric:
    name: str
    kind: Kind
    unit: str
    scope: str
    source: str
    tier: Tier
    help: str
    split: Split | None = None
    given_field: str = ""

    @property
    def field(self) -> str:
        return self.given_field or self.name.removeprefix(PREFIXES.get(self.scope, RUN_PREFIX))

    @property
    def labels(self) -> tuple[str, ...]:
        return SCOPES[self.scope] + ((self.split.label,) if self.split else ())

    def fields(self) -> Iterator[tuple[str, tuple[tuple[str, str], ...]]]:
        """Each field of this row with the label it adds; a set of states is one field."""
        if self.split is None or self.kind == "states":
            yield self.field, ()
            return
        for value in self.split.values:
            yield f"{self.field}_{value}", ((self.split.label, value),)


class Series(NamedTuple):
    metric: Metric
    extra: tuple[tuple[str, str], ...]


def _gpu(name: str, unit: str, tier: Tier, text: str, split: Split | None = None,
         kind: Kind = "gauge", scope: str = "gpu") -> Metric:  # fmt: skip
    return Metric(f"gpu_{name}", kind, unit, scope, "nvml", tier, text, split)


def _host(name: str, unit: str, tier: Tier, text: str, scope: str = "host", kind: Kind = "gauge",
          split: Split | None = None) -> Metric:  # fmt: skip
    return Metric(f"host_{name}", kind, unit, scope, "host", tier, text, split)


def _run(name: str, unit: str, text: str, scope: str = "rank", kind: Kind = "gauge", field: str = "",
         split: Split | None = None) -> Metric:  # fmt: skip
    return Metric(name, kind, unit, scope, "journal", "fast", text, split, field)


def _own(name: str, unit: str, text: str, scope: str = "agent", kind: Kind = "gauge") -> Metric:
    return Metric(f"trainvitals_{name}", kind, unit, scope, "agent", "fast", text)


_DIRECTION = Split("direction", ("receive", "transmit"))
_ECC = Split("kind", ("corrected", "uncorrected"))

# fmt: off
METRICS: tuple[Metric, ...] = (
    # GPU: the given names
    _gpu("utilization_percent", "percent", "fast", "Share of the last sample period in which a kernel ran."),
    _gpu("memory_used_mb", "MiB", "fast", "Device memory in use."),
    _gpu("memory_total_mb", "MiB", "fast", "Device memory installed."),
    _gpu("temperature_celsius", "celsius", "fast", "Temperature of the GPU die."),
    _gpu("power_draw_watts", "watts", "fast", "Power drawn by the board."),
    _gpu("fan_speed_percent", "percent", "fast", "Fan speed as a share of its maximum; absent where passive."),
    # GPU: more of the same, cheap to read
    _gpu("memory_controller_utilization_ratio", "ratio", "fast", "Share of time the memory controller was busy."),
    _gpu("clock_hertz", "hertz", "fast", "Clock now.", Split("clock", CLOCKS)),
    _gpu("throttle_active", "", "fast", "1 while this reason holds the clocks down.", Split("reason",
         THROTTLE_REASONS), "states"),
    _gpu("performance_state", "", "fast", "P-state: 0 is full performance, 15 the least."),
    _gpu("energy_joules_total", "joules", "fast", "Energy drawn since the driver was loaded.", kind="counter"),
    # GPU: every ten seconds
    _gpu("throttle_seconds_total", "seconds", "slow", "Time the clocks were held down, by policy.", Split("policy",
         THROTTLE_TIMES), "counter"),
    _gpu("memory_temperature_celsius", "celsius", "slow", "Temperature of the device memory."),
    _gpu("encoder_utilization_ratio", "ratio", "slow", "Share of time the video encoder was busy."),
    _gpu("decoder_utilization_ratio", "ratio", "slow", "Share of time the video decoder was busy."),
    _gpu("pcie_generation", "", "slow", "PCIe generation now; falls at idle to save power."),
    _gpu("pcie_width", "lanes", "slow", "PCIe lanes in use now."),
    _gpu("pcie_throughput_bytes_per_second", "bytes per second", "slow", "PCIe traffic over the last 20 ms.",
         _DIRECTION),
    _gpu("pcie_replays_total", "", "slow", "PCIe packets sent again.", kind="counter"),
    _gpu("nvlink_links", "", "slow", "NVLink links that the device has."),
    _gpu("nvlink_links_active", "", "slow", "NVLink links that are up."),
    _gpu("nvlink_bytes_total", "bytes", "slow", "NVLink payload, over all links.", _DIRECTION, "counter"),
    _gpu("nvlink_errors_total", "", "slow", "NVLink errors, over all links.", Split("kind", ("replay", "recovery",
         "crc_flit", "crc_data")), "counter"),
    _gpu("ecc_volatile_errors_total", "", "slow", "Memory errors since the driver was loaded.", _ECC, "counter"),
    _gpu("ecc_aggregate_errors_total", "", "slow", "Memory errors over the life of the device.", _ECC, "counter"),
    _gpu("retired_pages", "", "slow", "Memory pages taken out of use, by cause.", Split("cause", ("single_bit",
         "double_bit"))),
    _gpu("retired_pages_pending", "", "slow", "1 when pages wait for a reboot to be taken out of use."),
    _gpu("remapped_rows", "", "slow", "Memory rows remapped, by cause.", Split("cause", ("corrected", "uncorrected"))),
    _gpu("remapped_rows_pending", "", "slow", "1 when a row waits for a GPU reset to be remapped."),
    _gpu("remapped_rows_failed", "", "slow", "1 when a row could not be remapped: the GPU is to be replaced."),
    _gpu("recovery_action", "", "slow",
         "What the driver asks for: 0 nothing, 1 GPU reset, 2 node reboot, 3 drain "
         "peer-to-peer, 4 drain and reset; higher ones as NVML names them."),
    _gpu("compute_processes", "", "slow", "Processes that compute on the device."),
    _gpu("compute_processes_memory_bytes", "bytes", "slow", "Device memory held by compute processes."),
    _gpu("mig_memory_used_bytes", "bytes", "slow", "Memory in use of a MIG instance.", scope="mig"),
    _gpu("mig_memory_total_bytes", "bytes", "slow", "Memory of a MIG instance.", scope="mig"),
    # GPU: limits and settings, every minute
    _gpu("clock_max_hertz", "hertz", "rare", "Highest clock.", Split("clock", CLOCKS)),
    _gpu("power_limit_watts", "watts", "rare", "Power limit in force."),
    _gpu("power_limit_default_watts", "watts", "rare", "Power limit that the board was made for."),
    _gpu("temperature_slowdown_celsius", "celsius", "rare", "Temperature at which the device slows itself down."),
    _gpu("temperature_shutdown_celsius", "celsius", "rare", "Temperature at which the device switches itself off."),
    _gpu("pcie_generation_max", "", "rare", "Highest PCIe generation of device and slot."),
    _gpu("pcie_width_max", "lanes", "rare", "Highest PCIe width of device and slot."),
    _gpu("ecc_enabled", "", "rare", "1 where memory error correction is on."),
    _gpu("mig_enabled", "", "rare", "1 where the device is in MIG mode."),
    _gpu("mig_instances", "", "rare", "MIG instances on the device."),
    _gpu("info", "", "rare", "What the device is; always 1.", scope="gpu_info"),
    # GPU: events
    _gpu("xid_errors_total", "", "fast", "Xid errors by code, since the agent started.", kind="counter", scope="xid"),
    _gpu("xid_last_timestamp_seconds", "seconds", "fast", "When the Xid was last seen.", scope="xid"),
    # The node's GPUs
    Metric("gpu_count", "gauge", "", "host", "nvml", "fast", "GPUs that answered at the last tick."),
    Metric("gpu_expected_count", "gauge", "", "host", "agent", "fast",
           "GPUs that this node should have: as set, or the most that were seen."),
    Metric("node_price_dollars_per_hour", "gauge", "dollars per hour", "host", "agent", "fast",
           "What an hour of this node costs, where that was set."),
    # Host
    Metric("cpu_usage_percent", "gauge", "percent", "host", "host", "fast",
           "Share of all processors that was busy since the last tick."),
    _host("cpu_core_usage_percent", "percent", "fast", "Share of one processor that was busy; on request.", "core"),
    _host("cpu_iowait_ratio", "ratio", "fast", "Share of processor time spent waiting for disks."),
    _host("cpu_steal_ratio", "ratio", "fast", "Share of processor time that the hypervisor gave to others."),
    _host("cpu_count", "", "rare", "Logical processors."),
    _host("memory_total_bytes", "bytes", "fast", "Memory installed."),
    _host("memory_available_bytes", "bytes", "fast", "Memory that programs can still get."),
    _host("memory_used_bytes", "bytes", "fast", "Memory that is not available."),
    _host("swap_total_bytes", "bytes", "slow", "Swap space."),
    _host("swap_used_bytes", "bytes", "slow", "Swap space in use."),
    _host("swap_bytes_total", "bytes", "slow", "Memory moved to and from swap.", "host", "counter", Split("direction",
          ("in", "out"))),
    _host("load_average", "", "slow", "Processes that ran or waited, averaged over a window.", "host", "gauge",
          Split("window", ("1m", "5m", "15m"))),
    _host("file_descriptors_used", "", "slow", "Open files of the whole system."),
    _host("file_descriptors_max", "", "slow", "Files that may be open in the whole system."),
    _host("oom_kills_total", "", "slow", "Processes that the kernel killed for want of memory.", "host", "counter"),
    _host("boot_timestamp_seconds", "seconds", "rare", "When the machine was started."),
    _host("filesystem_size_bytes", "bytes", "slow", "Size of a file system.", "filesystem"),
    _host("filesystem_free_bytes", "bytes", "slow", "Space that users can still fill.", "filesystem"),
    _host("disk_read_bytes_total", "bytes", "slow", "Bytes read.", "disk", "counter"),
    _host("disk_written_bytes_total", "bytes", "slow", "Bytes written.", "disk", "counter"),
    _host("disk_busy_seconds_total", "seconds", "slow", "Time with a request under way.", "disk", "counter"),
    _host("network_receive_bytes_total", "bytes", "slow", "Bytes received.", "network", "counter"),
    _host("network_transmit_bytes_total", "bytes", "slow", "Bytes sent.", "network", "counter"),
    _host("network_receive_errors_total", "", "slow", "Packets broken on receipt.", "network", "counter"),
    _host("network_transmit_errors_total", "", "slow", "Packets not sent for an error.", "network", "counter"),
    # A Ray cluster, where the agent is to watch one
    Metric("ray_cluster_nodes", "gauge", "", "ray", "ray", "fast", "Nodes of the Ray cluster that are alive."),
    Metric("ray_cluster_resource_used", "gauge", "", "ray_resource", "ray", "fast",
           "What tasks and actors hold of a resource: processors, GPUs, bytes of memory or object store."),
    Metric("ray_cluster_resource_available", "gauge", "", "ray_resource", "ray", "fast",
           "What the Ray cluster has left of a resource, in the same units."),
    # Runs
    _run("training_run_info", "", "What the run is; always 1.", "run_info"),
    _run("training_run_status", "", "1 for the status that the run has.", "run", "states", "", Split("status",
         RUN_STATUSES)),
    _run("training_start_timestamp_seconds", "seconds", "When the run was started.", "run"),
    _run("training_last_checkpoint_timestamp_seconds", "seconds", "When the last checkpoint was written.", "run"),
    _run("training_planned_steps", "", "Steps that the run means to do.", "run"),
    _run("training_processes", "", "Processes of the run on this node, children included.", "run"),
    _run("training_process_cpu_seconds_total", "seconds", "Processor time of the run's processes.", "run", "counter"),
    _run("training_process_resident_bytes", "bytes", "Memory of the run's processes.", "run"),
    _run("training_process_threads", "", "Threads of the run's processes.", "run"),
    _run("training_metrics_dropped_total", "", "Values of the user's own not exported: too many names.", "run",
         "counter"),
    _run("training_loss", "", "Loss of the last step that told it."),
    _run("training_steps_total", "", "Steps done.", kind="counter"),
    _run("training_epoch", "", "Epoch now."),
    _run("learning_rate", "", "Learning rate of the last step that told it."),
    _run("gradient_norm", "", "Gradient norm of the last step that told it."),
    _run("training_step_duration_seconds", "seconds", "Wall time of a step.", kind="histogram"),
    _run("memory_allocation_mb", "MiB", "Device memory that the framework's allocator handed out.",
         field="memory_allocated_mb"),
    _run("training_memory_reserved_bytes", "bytes", "Device memory that the allocator holds."),
    _run("training_last_step_timestamp_seconds", "seconds", "When the last step was written."),
    _run("training_step", "", "Number of the last step, as the run counts."),
    _run("training_phase_seconds_total", "seconds", "Wall time by what it went into.", kind="counter",
         split=Split("phase", PHASES)),
    _run("training_phase_open_timestamp_seconds", "seconds", "Since when the rank evaluates or saves; absent while it "
         "does not.", split=Split("phase", LASTING_PHASES)),
    _run("training_throughput_samples_per_second", "samples per second", "Samples a second.",
         field="throughput_samples_per_sec"),
    _run("training_tokens_per_second", "tokens per second", "Tokens a second."),
    _run("training_nonfinite_total", "", "Values that were NaN or infinite, by field.", "nonfinite", "counter"),
    _run("training_gpu_info", "", "Joins a rank to its GPU; always 1.", "rank_gpu"),
    _run("training_metric", "", "A value under a name of the user's own.", "custom"),
    # The agent itself
    _own("build_info", "", "Version of the agent; always 1.", "build"),
    _own("source_up", "", "1 while the source answers.", "source"),
    _own("source_read_seconds", "seconds", "How long the source's slowest device took at the last tick.", "source"),
    _own("source_errors_total", "", "Reads that failed.", "source", "counter"),
    _own("finding", "", "1 for each finding that is open.", "finding"),
    _own("notify_channels", "", "Ways by which the agent itself tells people, and that work as far as it knows."),
    _own("samples_total", "", "Readings taken.", kind="counter"),
    _own("ticks_late_total", "", "Ticks that began late.", kind="counter"),
    _own("journal_records_total", "", "Journal records written.", kind="counter"),
    _own("journal_records_dropped_total", "", "Journal records lost: no space, no folder.", kind="counter"),
    _own("journal_bytes", "bytes", "Size of the journal on disk."),
    _own("journal_garbage_lines_total", "", "Journal lines that were no record.", kind="counter"),
    _own("journal_read_errors_total", "", "Journal files that could not be read.", kind="counter"),
    _own("start_timestamp_seconds", "seconds", "When the agent started."),
)
# fmt: on

SERIES: dict[str, dict[str, Series]] = {scope: {} for scope in SCOPES}
for _metric in METRICS:
    for _field, _extra in _metric.fields():
        SERIES[_metric.scope][_field] = Series(_metric, _extra)
BY_NAME = {metric.name: metric for metric in METRICS}


def fields(scope: str, tier: Tier | None = None) -> list[str]:
    """The fields of a scope in table order: what a reader of the journal can expect there."""
    return [name for name, series in SERIES[scope].items() if tier in (None, series.metric.tier)]
