"""Cost and energy: what runs and GPUs cost, how much of it went into training, and how much was wasted."""

from grafana.lib import Dashboard, Row, Variable
from grafana.parts import (
    INSTANCES,
    JOBS,
    RUNS,
    falling,
    judged,
    line,
    linked,
    node_link,
    run_link,
    shown,
    stat,
    table,
    text,
)  # fmt: skip
from grafana.queries import NODE, RUN, selector
from grafana.thresholds import threshold

NEEDS_RULES = (
    "This dashboard reads series that our rules record (`prometheus/rules/record.yml`), and prices that each node was "
    "told (`--node-price`, `TRAINVITALS_NODE_PRICE`). Without the rules its panels say *No data*; without a price only "
    "those in dollars do. CO₂ is energy times the factor above, in grams for each kWh of your supply."
)
JOULES_PER_KWH = "3600000"
CO2 = Variable("co2", "g CO₂ per kWh", "400", text=True)
VARIABLES = (JOBS, INSTANCES, RUNS, CO2)
HERE = selector(NODE)
OF_RUN = selector(RUN)
# Each exporter that reads a GPU counts for itself.
JOULES = f"increase(gpu:energy:joules_total{HERE}[$__range])"
DOLLARS = f"sum(node:price:dollars_per_hour{HERE})"


def over_range(rate_per_hour: str) -> str:
    """What a rate came to in the time shown, by the minute: times without a reading count nothing."""
    return f"sum_over_time(({rate_per_hour})[$__range:1m]) / 60"


def is_it_well() -> Row:
    energy = f"sum(max by (uuid) ({JOULES})) / {JOULES_PER_KWH}"
    goodput = f"avg(avg_over_time(run:goodput:ratio{OF_RUN}[$__range]))"
    return Row("", 4, (
        stat("Cost per hour", "What these nodes cost an hour, where their price was set.", DOLLARS,
             unit="currencyUSD", decimals=2),
        stat("Cost", "What these nodes cost in the time shown.", over_range(DOLLARS),
             unit="currencyUSD", decimals=2),
        stat("Wasted", "Cost of the time in which runs made no progress, in the time shown.",
             over_range(f"sum(run:waste:dollars_per_hour{OF_RUN})"), unit="currencyUSD", decimals=2),
        stat("Productive", "Mean share of wall time that runs spend in forward, backward and optimizer.", goodput,
             unit="percentunit", decimals=0, steps=falling(threshold("goodput:ratio"))),
        stat("Energy", "Energy of the GPUs in the time shown.", energy, unit="kwatth", decimals=1),
        stat("CO₂", "Energy of the GPUs in the time shown, times the factor above.", f"{energy} * $co2",
             unit="massg", decimals=0),
    ))  # fmt: skip


def per_run() -> Row:
    columns = (
        linked("Run", run_link(VARIABLES)),
        judged("Productive", "percentunit", falling(threshold("goodput:ratio")), decimals=0),
        shown("Energy", "kwatth", decimals=2), shown("CO₂", "massg", decimals=0), shown("GPUs", "short", decimals=0),
    )  # fmt: skip
    kwh = f"sum by (run) (run:energy:joules{OF_RUN}) / {JOULES_PER_KWH}"
    values = {
        "Cost": f"sum by (run) (run:cost:dollars{OF_RUN})",
        "Per hour": f"sum by (run) (run:cost:dollars_per_hour{OF_RUN})",
        "Wasted per hour": f"sum by (run) (run:waste:dollars_per_hour{OF_RUN})",
        "Productive": f"avg by (run) (run:goodput:ratio{OF_RUN})",
        "GPUs": f"sum by (run) (run:gpus:count{OF_RUN})",
        "Energy": kwh,
        "CO₂": f"{kwh} * $co2",
    }
    return Row("By run, dearest first", 9, (
        table("Runs", "What each run cost since its start, and what it costs now.", {"run": "Run"}, values,
              worst="Cost", unit="currencyUSD", decimals=2, columns=columns),
    ))  # fmt: skip


def per_gpu() -> Row:
    share = f"node:price:dollars_per_hour{HERE} / on (instance) node:gpus:count{HERE}"
    busy = f"max by (instance, gpu, uuid) (avg_over_time(gpu:utilization:ratio{HERE}[$__range]))"
    kwh = f"0 * {busy} + on (uuid) group_left () max by (uuid) ({JOULES}) / {JOULES_PER_KWH}"
    values = {
        "Per hour": f"0 * max by (instance, gpu, uuid) (gpu:power:watts{HERE}) + on (instance) group_left () ({share})",
        "Energy": kwh,
        "CO₂": f"{kwh} * $co2",
        "Busy": busy,
    }
    columns = (
        linked("Node", node_link(VARIABLES)), shown("Per hour", "currencyUSD", decimals=2),
        shown("Energy", "kwatth", decimals=2), shown("CO₂", "massg", decimals=0),
        shown("Busy", "percentunit", decimals=0),
    )  # fmt: skip
    return Row("By GPU, least busy first", 9, (
        table("GPUs", "Each GPU's share of its node's price, and what it did in the time shown.",
              {"instance": "Node", "gpu": "GPU", "uuid": "UUID"}, values, worst="Busy", ascending=True, unit="short",
              columns=columns),
    ))  # fmt: skip


def course() -> Row:
    return Row("Over time", 9, (
        line("Cost per hour by run", "What the GPUs of each run cost an hour.",
             (f"sum by (run) (run:cost:dollars_per_hour{OF_RUN})", "{{run}}"), unit="currencyUSD", minimum=0, width=8),
        line("Productive share by run", "Share of wall time in forward, backward and optimizer.",
             (f"avg by (run) (run:goodput:ratio{OF_RUN})", "{{run}}"), unit="percentunit", minimum=0, maximum=1,
             width=8, steps=falling(threshold("goodput:ratio"))),
        line("Power by run", "Power of the GPUs of each run together.",
             (f"sum by (run) (run:power:watts{OF_RUN})", "{{run}}"), unit="watt", minimum=0, width=8),
    ))  # fmt: skip


DASHBOARD = Dashboard(
    "trainvitals-cost", "TrainVitals / Cost and energy", "What do runs and GPUs cost, and how much of it is wasted?",
    VARIABLES,
    (is_it_well(), per_run(), per_gpu(), course(),
     Row("", 3, (text("About this dashboard", "What it needs to show anything.", NEEDS_RULES),))),
    since="now-24h",
)  # fmt: skip
