"""Queries of the GPU dashboard that take more than a name: shares, kinds of memory errors, the reason of a throttle."""

from typing import Any

from grafana.queries import GPU, JOB, RATE, gpu, selector

Json = dict[str, Any]

MEMORY_RATIO = (
    f"gpu:memory_used:ratio{{{GPU}}} or on (instance, uuid) "
    f"gpu_memory_used_mb{{{JOB}, {GPU}}} / gpu_memory_total_mb{{{JOB}, {GPU}}}"
)
TEMPERATURE = gpu("gpu:temperature:celsius", "gpu_temperature_celsius")
SLOWDOWN = gpu("gpu:temperature_slowdown:celsius", "gpu_temperature_slowdown_celsius")
UNCORRECTED = gpu("gpu:ecc_uncorrected:total", "gpu_ecc_volatile_errors_total", raw_only='kind="uncorrected"')
CORRECTED = gpu("gpu:ecc_corrected:total", "gpu_ecc_volatile_errors_total", raw_only='kind="corrected"')
POWER_SHARE = "({}) / on (instance, uuid) group_left () max by (instance, uuid) ({})".format(
    gpu("gpu:power:watts", "gpu_power_draw_watts"), gpu("gpu:power_limit:watts", "gpu_power_limit_watts")
)
NVLINK_BYTES = (
    f"gpu:nvlink_bytes:rate{{{GPU}}} or on (instance, uuid) "
    f"sum by (instance, gpu, uuid) (rate(gpu_nvlink_bytes_total{{{JOB}, {GPU}}}{RATE}))"
)
# What reads Xids and answers now: only of its GPUs can be said that none was seen. DCGM's is the code itself.
WATCHED = (
    f"max by (gpu, uuid) (gpu_temperature_celsius{{{JOB}, {GPU}}}) or on (gpu, uuid) max by (gpu, uuid) (label_join("
    f'(DCGM_FI_DEV_XID_ERRORS{{{GPU}}} or DCGM_FI_DEV_XID_ERROR{{{GPU}}}) == 0, "uuid", "", "UUID"))'
)
XIDS = "max by (gpu, uuid, xid) ({})".format(
    gpu("gpu:xid_last:timestamp_seconds", "gpu_xid_last_timestamp_seconds", split="xid")
)
# Where none was seen it is as long ago as the epoch, which comes last and is shown as a word.
XID_AGE = f'time() - ({XIDS} or on (gpu, uuid) label_replace(0 * ({WATCHED}), "xid", "none", "", ""))'
XID_NEVER: Json = {"type": "range", "options": {"from": 1e9, "to": None, "result": {"text": "never", "index": 0}}}


def per_minute(recorded: str, raw: str) -> str:
    """How fast a GPU's counter rises, all its kinds together; what is recorded each exporter counts for itself."""
    by = "by (instance, gpu, uuid)"
    return (
        f"60 * (max {by} (rate({recorded}{selector(GPU)}{RATE})) "
        f"or on (instance, uuid) sum {by} (rate({raw}{selector(JOB, GPU)}{RATE})))"
    )


# From harmless to grave: of several reasons at once the gravest is shown.
REASONS = (
    ("gpu_idle", "idle", "#5a6270"),
    ("applications_clocks_setting", "clocks set by hand", "blue"),
    ("display_clock_setting", "display", "blue"),
    ("sync_boost", "sync boost", "blue"),
    ("sw_power_cap", "power cap", "yellow"),
    ("sw_thermal_slowdown", "software thermal", "orange"),
    ("hw_slowdown", "hardware slowdown", "red"),
    ("hw_thermal_slowdown", "hardware thermal", "dark-red"),
    ("hw_power_brake", "power brake", "purple"),
)


def gravest(series: str, *only: str) -> str:
    """The place in REASONS of the last one that is active, 0 where none is."""
    ranked = (
        f"{at} * {series}" + selector(f'reason="{reason}"', *only, GPU)
        for at, (reason, _, _) in enumerate(REASONS, start=1)
    )
    return f"max by (instance, gpu, uuid) ({' or '.join(ranked)})"


THROTTLED_BY = f"{gravest('gpu:throttle:active')} or on (instance, uuid) {gravest('gpu_throttle_active', JOB)}"
REASON_NAMES: Json = {
    "type": "value",
    "options": {
        "0": {"text": "none", "color": "green", "index": 0},
        **{
            str(at): {"text": name, "color": color, "index": at} for at, (_, name, color) in enumerate(REASONS, start=1)
        },
    },
}
