"""The numbers that detectors judge by, once. Each can be set: `thresholds:` in alerts.yml, under the same name.

What a number is for stands above it, and above those that follow; docs/thresholds.md is made of that. They were tuned
on recorded runs; docs/detection.md says how well they do. How a detector takes medians and slopes is its own business.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from trainvitals.errors import SettingError, nearest


@dataclass(frozen=True, slots=True)
class Limits:
    # Steps of a run before its values are judged against its own past: what is usual is not known yet.
    learning_steps: int = 20
    # Steps that "its own past" reaches back.
    window_steps: int = 1000
    # Gradient norms in a row that are infinite, or in a run's first steps NaN: loss scales begin at 2^32 at most and
    # halve with each.
    overflows: int = 33
    # NaN gradient norms in a row, later.
    nan_gradients: int = 2
    # Steps within which a loss scale finds its place.
    scaling_steps: int = 100
    # Robust sigmas above the running level, and for so many steps in a row.
    loss_spike_sigma: float = 7.0
    loss_spike_steps: int = 3
    # A sigma is at least this share of the level: a loss that hardly moves may move a little.
    loss_least_sigma: float = 0.003
    # Times the running level, for so many steps in a row; where steps are slow, for so many seconds.
    loss_divergence: float = 5.0
    loss_divergence_steps: int = 10
    loss_divergence_seconds: float = 480.0
    # And at least this share of the loss at the start: five times next to nothing is next to nothing.
    loss_divergence_floor: float = 0.05
    # The window over which the loss is to fall grows with the run: at least window_steps, else this share of its steps.
    loss_window: float = 0.4
    # Standard errors that two halves may differ by and still be called level.
    loss_level_errors: float = 0.5
    # And by which the later one must be lower for a loss that was called level to fall again.
    loss_fall_errors: float = 3.0
    # A plateau: before it, the loss fell by so many standard errors and this share of itself.
    plateau_fall_errors: float = 6.0
    plateau_fall: float = 0.01
    # From this share of the planned steps, or below this share of the highest learning rate, a schedule is at its end.
    schedule_end: float = 0.95
    schedule_end_rate: float = 0.05
    # Given.
    gradient_norm: float = 10.0
    gradient_steps: int = 3
    # Times its own median, above gradient_norm.
    gradient_explosion: float = 5.0
    # Below this nothing is learned in half precision; for so many steps.
    gradient_vanishing: float = 1e-7
    gradient_vanishing_steps: int = 10
    # Given. For so many steps, or this share of the run's: a schedule's last steps are few.
    learning_rate_low: float = 1e-8
    learning_rate_low_steps: int = 50
    learning_rate_low_share: float = 0.05
    # Times that the learning rate grew within the last 200 steps, and the rise of the loss since, in shares of itself.
    learning_rate_growth: float = 1.2
    learning_rate_rise: float = 0.05
    # A run stands after the longer of so many seconds and so many of its own steps.
    stall_seconds: float = 300.0
    stall_steps: float = 10.0
    # Loading, compiling and the first step together.
    first_step_seconds: float = 1800.0
    # An announced evaluation or saving may last so long, or half as long again as the longest so far.
    pause_seconds: float = 3600.0
    pause_growth: float = 1.5
    # A hang is suspected sooner: GPUs look busy (share of the time) and draw next to nothing (share of their limit).
    hang_seconds: float = 60.0
    hang_steps: float = 5.0
    hang_utilization: float = 0.9
    hang_power: float = 0.35
    # Times the usual interval between checkpoints.
    checkpoint_overdue: float = 2.0
    # Of its own baseline, for so long; the baseline is of so long before.
    throughput: float = 0.9
    throughput_seconds: float = 900.0
    throughput_baseline_seconds: float = 21600.0
    # Times the median, and times the slowest of the last 500 steps: single steps that are not periodic.
    step_outlier: float = 2.5
    step_outlier_peak: float = 1.5
    # Share of wall time over five minutes: a ticket, and a page; not before each rank told so many
    # steps (or as many as five minutes hold) and seconds.
    data_wait: float = 0.1
    data_wait_page: float = 0.3
    data_wait_steps: int = 30
    data_wait_seconds: float = 60.0
    # Times what is usual among its peers before they wait for each other: a ticket, a page, and what needs no two
    # minutes to be believed.
    straggler: float = 1.1
    straggler_page: float = 1.33
    straggler_gross: float = 1.5
    straggler_steps: int = 10
    straggler_seconds: float = 120.0
    straggler_gross_seconds: float = 5.0
    # And so much of the wall time of all its slow steps.
    straggler_excess: float = 0.03
    # From this share of ranks on, slowness is no single worker's.
    straggler_group: float = 0.25
    # Given. Of one's own, not of the device: see gpu_thermal_margin.
    gpu_temperature: float = 80.0
    gpu_temperature_seconds: float = 60.0
    # Degrees below the device's own slowdown limit, for so long; once told, so many more are wanted.
    gpu_thermal_margin: float = 5.0
    gpu_thermal_seconds: float = 10.0
    gpu_thermal_ease: float = 2.0
    # Of the memory of a device.
    gpu_memory_temperature: float = 95.0
    gpu_memory_temperature_seconds: float = 300.0
    # Given. Share of device memory.
    gpu_memory: float = 0.9
    gpu_memory_seconds: float = 300.0
    # Utilisation below which a GPU idles, for so long, while so much of its memory (MiB) is held.
    gpu_idle: float = 0.05
    gpu_idle_seconds: float = 1800.0
    gpu_idle_memory: float = 1024.0
    # For so long more processes are on a GPU than runs have ranks there.
    gpu_shared_seconds: float = 60.0
    # Share of ten minutes, or how often a minute, that the hardware held the clocks down; not before so long.
    gpu_slowdown: float = 0.6
    gpu_slowdown_seconds: float = 600.0
    gpu_slowdown_seen_seconds: float = 300.0
    # It comes and goes: for so long it is told after it was seen last.
    gpu_slowdown_told_seconds: float = 300.0
    # Utilisation from which a PCIe link should run at its full speed, and for how long it may be slower.
    gpu_load: float = 0.2
    gpu_pcie_seconds: float = 600.0
    # Errors of links, over so long; they must have come for half of that. Errors of memory, within an hour.
    gpu_link_errors_seconds: float = 600.0
    gpu_pcie_replays_per_minute: float = 1.0
    gpu_nvlink_errors_per_minute: float = 1.0
    gpu_ecc_corrected_per_hour: float = 10.0
    # For how long an event that has no end of its own is told: a little longer than Prometheus's rules do.
    event_seconds: float = 780.0
    # Memory is full within: a ticket, and for device memory a page.
    leak_seconds: float = 86400.0
    gpu_out_of_memory_seconds: float = 1800.0
    # Caches and allocators grow at first, since the start of a process, or since nobody held a GPU's memory: before a
    # leak is looked for, and before device memory that is full within minutes is.
    leak_warm_up_seconds: float = 900.0
    gpu_out_of_memory_warm_up_seconds: float = 60.0
    # Nearly full, and the allocator holds so many times what it handed out, and so many times what it held before.
    gpu_out_of_memory_used: float = 0.95
    gpu_out_of_memory_reserved: float = 1.5
    gpu_out_of_memory_growth: float = 1.1
    # Given, each for so long.
    host_cpu: float = 0.9
    host_cpu_seconds: float = 600.0
    host_memory: float = 0.85
    host_memory_seconds: float = 300.0
    host_iowait: float = 0.2
    host_iowait_seconds: float = 600.0
    # In and out, bytes a second over five minutes.
    host_swap: float = 1048576.0
    host_swap_seconds: float = 300.0
    # A disk is full within: a ticket, a page; or has less than this share left.
    host_disk_filling_seconds: float = 86400.0
    host_disk_full_seconds: float = 14400.0
    host_disk_full: float = 0.03
    # For so long the slope has to say so.
    host_disk_filling_held_seconds: float = 900.0
    host_disk_full_held_seconds: float = 300.0
    # Slopes count only once so little is left.
    host_disk_watched: float = 0.4
    host_disk_low: float = 0.2
    # A source that does not answer, a GPU that is missing: for so long, the latter not before a source had so long to
    # find what there is.
    source_seconds: float = 60.0
    gpu_missing_seconds: float = 1.0
    gpu_finding_seconds: float = 10.0


NAMES = tuple(one.name for one in fields(Limits))


def limits(given: Mapping[str, Any], key: str = "thresholds", table: Limits | None = None) -> Limits:
    """The table with some numbers of the user's own; SettingError names the one that cannot be."""
    for name, value in given.items():
        if name not in NAMES:
            fix = f"there is no such number: the nearest one is {nearest(str(name), NAMES)}"
            raise SettingError(f"{key}: {name}", value, fix)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value < 0:
            raise SettingError(f"{key}: {name}", value, "give a number of 0 or more")
    told: dict[str, Any] = {name: type(getattr(Limits(), name))(value) for name, value in given.items()}
    return replace(table or Limits(), **told)
