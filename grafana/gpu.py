"""GPU: one node's GPUs in the whole vocabulary, from load and heat to throttling, memory errors and links."""

from grafana.gpu_panels import (
    CORRECTED,
    MEMORY_RATIO,
    NVLINK_BYTES,
    POWER_SHARE,
    REASON_NAMES,
    SLOWDOWN,
    TEMPERATURE,
    THROTTLED_BY,
    UNCORRECTED,
    XID_AGE,
    XID_NEVER,
    per_minute,
)  # fmt: skip
from grafana.lib import Dashboard, Panel, Query, Row, Steps
from grafana.parts import (
    GPUS,
    JOBS,
    NONE_ALLOWED,
    NONE_WANTED,
    ONE_INSTANCE,
    judged,
    line,
    over_whole,
    rising,
    shown,
    stat,
    table,
)  # fmt: skip
from grafana.queries import GPU, JOB, THE_NODE, gpu
from grafana.thresholds import threshold

LEGEND = "GPU {{gpu}}"
HARDWARE = 'reason=~"hw_slowdown|hw_thermal_slowdown|hw_power_brake"'
SLOWED = gpu("gpu:throttle:active", "gpu_throttle_active", split="reason", only=HARDWARE)
MISSING = (
    f"sum(node:gpus_expected:count{{{THE_NODE}}} or on (instance) gpu_expected_count{{{JOB}, {THE_NODE}}})"
    f" - sum(node:gpus:count{{{THE_NODE}}} or on (instance) gpu_count{{{JOB}, {THE_NODE}}})"
)


def by_gpu(expr: str) -> str:
    return f"max by (gpu, uuid) ({expr})"


def is_it_well() -> Row:
    # In whole degrees: at the limit itself somebody is paged, at the margin itself there is a ticket.
    margin = Steps("red", ((1, "orange"), (threshold("gpu_thermal_margin:celsius") + 1, "green")))
    return Row("", 4, (
        stat("GPUs missing", "GPUs that this node should have and that do not answer.", MISSING, unit="short",
             steps=NONE_ALLOWED),
        stat("Hottest GPU", "Temperature of the hottest die.", f"max({TEMPERATURE})", unit="celsius",
             steps=over_whole("gpu_temperature:celsius")),
        stat("Least margin to slowdown", "Degrees left until a device slows itself down.",
             f"min(({SLOWDOWN}) - on (instance, uuid) ({TEMPERATURE}))", unit="celsius", steps=margin),
        stat("Fullest memory", "Used share of the fullest device memory.", f"max({MEMORY_RATIO})",
             unit="percentunit", steps=rising(threshold("gpu_memory:ratio"))),
        stat("Slowed by hardware now", "GPUs whose hardware holds the clocks down: heat, supply or power brake.",
             f"count(max by (instance, uuid) ({SLOWED}) == 1) or 0 * count({SLOWED})", unit="short",
             steps=NONE_ALLOWED),
        stat("Uncorrectable errors", "Memory errors that could not be corrected, since the driver was loaded.",
             f"sum({UNCORRECTED})", unit="short", steps=NONE_ALLOWED),
    ))  # fmt: skip


def load() -> Row:
    return Row("Load", 9, (
        line("Utilization", "Share of time in which a kernel ran; 100 % at little power is the mark of a hang.",
             (gpu("gpu:utilization:ratio", "gpu_utilization_percent", " / 100"), LEGEND),
             unit="percentunit", minimum=0, maximum=1, width=8),
        line("Power", "Power that each board draws.", (gpu("gpu:power:watts", "gpu_power_draw_watts"), LEGEND),
             unit="watt", minimum=0, width=8),
        line("SM clock", "Clock of the multiprocessors.",
             (gpu("gpu:clock:hertz", "gpu_clock_hertz", split="clock", only='clock="sm"'), LEGEND),
             unit="hertz", minimum=0, width=8),
    ))  # fmt: skip


def held_back() -> Row:
    return Row("Held back", 10, (
        Panel("Why clocks are held down", "The gravest reason of each moment; the power cap is usual under full load.",
              (Query(THROTTLED_BY, LEGEND),), kind="state-timeline", width=16, mappings=(REASON_NAMES,), unit="none"),
        line("Temperature", "Temperature of each die.", (TEMPERATURE, LEGEND), unit="celsius", width=8,
             steps=rising(threshold("gpu_temperature:celsius"))),
    ))  # fmt: skip


def memory() -> Row:
    return Row("Memory", 9, (
        line("Memory used", "Used share of each device memory.", (MEMORY_RATIO, LEGEND), unit="percentunit",
             minimum=0, maximum=1, width=8, steps=rising(threshold("gpu_memory:ratio"))),
        line("Memory bandwidth", "Share of time in which the memory controller was busy.",
             (gpu("gpu:memory_controller_utilization:ratio", "gpu_memory_controller_utilization_ratio"), LEGEND),
             unit="percentunit", minimum=0, maximum=1, width=8),
        line("Memory temperature", "Temperature of each device memory, where it is reported.",
             (gpu("gpu:memory_temperature:celsius", "gpu_memory_temperature_celsius"), LEGEND),
             unit="celsius", width=8, steps=rising(threshold("gpu_memory_temperature:celsius"))),
    ))  # fmt: skip


def errors() -> Row:
    names = {"gpu": "GPU", "uuid": "UUID"}
    rows = {
        "Uncorrectable": by_gpu(UNCORRECTED),
        "Corrected": by_gpu(CORRECTED),
        "Rows pending": by_gpu(gpu("gpu:remapped_rows_pending", "gpu_remapped_rows_pending")),
        "Remap failed": by_gpu(gpu("gpu:remapped_rows_failed", "gpu_remapped_rows_failed")),
    }
    bad = (judged("Uncorrectable", "short", NONE_ALLOWED), judged("Rows pending", "short", NONE_WANTED),
           judged("Remap failed", "short", NONE_ALLOWED))  # fmt: skip
    return Row("Errors", 8, (
        table("Xid errors", "What the driver reported, last first; GpuXidFatal's runbook says what a code asks for.",
              {**names, "xid": "Xid"}, {"Seen, ago": XID_AGE}, worst="Seen, ago", ascending=True, width=10,
              unit="s", columns=(shown("Seen, ago", "s", mappings=[XID_NEVER]),)),
        table("Memory errors", "Errors since the driver was loaded, rows that wait for a reset, rows past repair.",
              names, rows, worst="Uncorrectable", width=14, unit="short", columns=bad),
    ))  # fmt: skip


def links() -> Row:
    received, sent = (
        gpu(f"gpu:pcie_{way}:bytes_per_second", "gpu_pcie_throughput_bytes_per_second", raw_only=f'direction="{way}"')
        for way in ("receive", "transmit")
    )
    return Row("Links", 9, (
        line("PCIe received", "Traffic from host to device.", (received, LEGEND), unit="Bps", minimum=0, width=6),
        line("PCIe sent", "Traffic from device to host.", (sent, LEGEND), unit="Bps", minimum=0, width=6),
        line("NVLink traffic", "Payload over all links, both ways.", (NVLINK_BYTES, LEGEND), unit="Bps", minimum=0,
             width=6),
        line("PCIe generation and width", "What each link runs at now; the generation falls at idle to save power.",
             (gpu("gpu:pcie_generation", "gpu_pcie_generation"), "GPU {{gpu}} generation"),
             (gpu("gpu:pcie_width", "gpu_pcie_width"), "GPU {{gpu}} lanes"), unit="short", minimum=0, width=6),
    ))  # fmt: skip


def power_and_errors() -> Row:
    return Row("Power, fans and link errors", 8, (
        line("Share of the power limit", "Power drawn, by the limit in force.", (POWER_SHARE, LEGEND),
             unit="percentunit", minimum=0, width=6),
        line("Fan speed", "Share of its maximum; passive boards have none.",
             (gpu("gpu:fan_speed:ratio", "gpu_fan_speed_percent", " / 100"), LEGEND), unit="percentunit", minimum=0,
             maximum=1, width=6),
        line("PCIe packets sent again", "Replays a minute: a steady stream is a bad slot or riser.",
             (per_minute("gpu:pcie_replays:total", "gpu_pcie_replays_total"), LEGEND), unit="short", minimum=0,
             width=6, steps=rising(threshold("gpu_pcie_replays:per_minute"))),
        line("NVLink errors", "Errors of all kinds a minute, over all links of a GPU.",
             (per_minute("gpu:nvlink_errors:total", "gpu_nvlink_errors_total"), LEGEND), unit="short", minimum=0,
             width=6, steps=rising(threshold("gpu_nvlink_errors:per_minute"))),
    ))  # fmt: skip


def profiled() -> Row:
    return Row("Where DCGM profiles", 8, tuple(
        line(title, told, (f"{series}{{{GPU}}}", LEGEND), unit="percentunit", minimum=0, maximum=1, width=8)
        for title, told, series in (
            ("SM active", "Share of time in which a multiprocessor had work; needs dcgm-profiling and our rules.",
             "gpu:sm_active:ratio"),
            ("Tensor cores active", "Share of time in which tensor cores worked; needs dcgm-profiling and our rules.",
             "gpu:tensor_active:ratio"),
            ("DRAM active", "Share of time in which device memory moved data; needs dcgm-profiling and our rules.",
             "gpu:dram_active:ratio"),
        )
    ))  # fmt: skip


DASHBOARD = Dashboard(
    "trainvitals-gpu", "TrainVitals / GPU", "Is each GPU of this node well, and if not, what holds it back?",
    (JOBS, ONE_INSTANCE, GPUS),
    (is_it_well(), load(), held_back(), memory(), errors(), links(), power_and_errors(), profiled()),
)  # fmt: skip
