"""docs/metrics.md, made of the catalogue by `make docs`.

| `gpu_clock_hertz` | gauge | hertz | gpu, uuid, clock | nvml, each tick | Clock now. clock: graphics, sm, memory. |
"""

from trainvitals.catalog import METRICS, Metric


def markdown() -> str:
    """The text of docs/metrics.md."""
    head = "| metric | type | unit | labels | source, how often | what it tells |\n|---|---|---|---|---|---|\n"
    return _PREFACE + head + "".join(_row(metric) for metric in METRICS)


def _row(metric: Metric) -> str:
    kind = "gauge (0/1)" if metric.kind == "states" else metric.kind
    labels = ", ".join(metric.labels) or "none"
    values = f" {metric.split.label}: {', '.join(metric.split.values)}." if metric.split else ""
    often = f"{metric.source}, {_OFTEN[metric.tier]}"
    return f"| `{metric.name}` | {kind} | {metric.unit} | {labels} | {often} | {metric.help}{values} |\n"


_OFTEN = {"fast": "each tick", "slow": "10 s", "rare": "60 s"}
_PREFACE = """# Metrics

Made from `catalog.py` by `make docs`; edit that table, not this page.

A series that is absent is unknown: the device does not report it, or its source does not answer.
Nothing here is ever 0 or -1 for want of a value.

"""

if __name__ == "__main__":
    print(markdown(), end="")
