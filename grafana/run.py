"""Training run: is it learning, is it fast, what does its time go into, and what happened when."""

from typing import Any

from grafana.lib import Dashboard, Event, Row, Steps
from grafana.parts import JOBS, NONE_ALLOWED, ONE_RUN, falling, line, rising, stat
from grafana.queries import (
    THE_RUN,
    firing,
    has_status,
    of_run,
    on_its_gpus,
    once_a_rank,
    per_second,
    phase_share,
    rank_raw,
    selector,
    step_seconds,
    while_running,
    while_stepping,
)
from grafana.thresholds import threshold

# In the order of gravity: where nodes differ in what they saw, the gravest is shown.
STATUSES = (("running", "blue"), ("finished", "green"), ("preempted", "yellow"), ("crashed", "red"), ("killed", "red"))
STATUS_NAMES: dict[str, Any] = {
    "type": "value",
    "options": {
        str(at): {"text": name, "color": color, "index": at} for at, (name, color) in enumerate(STATUSES, start=1)
    },
}


RANKED = (f"{at} * {has_status(name)}" for at, (name, _) in enumerate(STATUSES, start=1))
STATUS = f"max by (run) ({' or '.join(RANKED)})"
STEP = f"max by (run) ({rank_raw('training_step')})"
PLANNED = f"max by (run) ({rank_raw('training_planned_steps')})"
STEP_SECONDS = of_run("run:step_duration:seconds", step_seconds("run"), how="avg")
DATA_WAIT = of_run("run:data_wait:ratio", phase_share('phase="data_wait"'), how="avg")
PHASES = (
    f"avg by (run, phase) (run:phase:ratio{{{THE_RUN}}}) or on (run, phase) "
    f"(sum by (run, phase) ({per_second('training_phase_seconds_total')})"
    f" / on (run) group_left () (sum by (run) ({per_second('training_phase_seconds_total')}) > 0))"
)


def is_it_well() -> Row:
    since_step = while_running(f"time() - max by (run) ({rank_raw('training_last_step_timestamp_seconds')})")
    nonfinite = f"{once_a_rank('training_nonfinite_total', 'rank, field')} or 0 * {STEP}"
    return Row("", 4, (
        stat("Status", "What the run is doing, or how it ended.", STATUS, width=3,
             mappings=(STATUS_NAMES,), unit="none"),
        stat("Alerts", "Alerts that fire for this run; it stays empty where no rules are loaded.",
             firing(f'severity=~"page|ticket", {THE_RUN}'), width=3, unit="short",
             steps=NONE_ALLOWED),
        stat("Last step, ago", "Time since any rank ended a step, while the run is running.", since_step, width=3,
             unit="s", steps=Steps("green", ((threshold("stall:seconds"), "red"),))),
        stat("NaN or infinite", "Values that were not finite, since the run began.", nonfinite, width=3,
             unit="short", steps=NONE_ALLOWED),
        stat("Waiting for data", "Share of wall time in which ranks wait for their data.", DATA_WAIT, width=3,
             unit="percentunit", steps=rising(threshold("data_wait:ratio"), threshold("data_wait_page:ratio"))),
        stat("Time per step", "Mean wall time of a step now.", STEP_SECONDS, width=3, unit="s"),
        stat("Done", "Share of the planned steps.", f"{STEP} / {PLANNED}", width=3, unit="percentunit"),
        stat("Left", "Time to the last planned step at the present speed.",
             f"({PLANNED} - {STEP}) * on (run) ({STEP_SECONDS})", width=3, unit="s"),
    ))  # fmt: skip


def learning() -> Row:
    norms = Steps(
        "orange", ((threshold("gradient_vanishing:value"), "green"), (threshold("gradient_norm:value"), "orange"))
    )
    return Row("Is it learning?", 10, (
        line("Loss", "Loss of the last step, mean over the ranks; a gap is a NaN.",
             (while_running(f"avg by (run) ({rank_raw('training_loss')})"), "loss"), unit="short", width=12),
        line("Gradient norm", "Largest gradient norm of any rank.",
             (while_running(f"max by (run) ({rank_raw('gradient_norm')})"), "gradient norm"), unit="short",
             width=6, minimum=0, steps=norms),
        line("Learning rate", "Learning rate of the last step.",
             (while_running(f"max by (run) ({rank_raw('learning_rate')})"), "learning rate"), unit="sci",
             width=6, minimum=0, steps=falling(threshold("learning_rate_low:value"))),
    ))  # fmt: skip


def speed() -> Row:
    samples = of_run("run:throughput:samples_per_second", once_a_rank("training_throughput_samples_per_second"))
    tokens = of_run("run:tokens:per_second", once_a_rank("training_tokens_per_second"))
    stacked = {"stacking": {"mode": "normal", "group": "A"}, "fillOpacity": 70, "lineWidth": 0}
    return Row("Is it fast?", 10, (
        line("What a step is made of", "Share of wall time by phase, all ranks together.", (PHASES, "{{phase}}"),
             unit="percentunit", minimum=0, maximum=1, custom=stacked),
        line("Samples per second", "Samples of all ranks together.", (while_stepping(samples), "samples"), unit="short",
             width=6, minimum=0),
        line("Tokens per second", "Tokens of all ranks together, where the run tells them.",
             (while_stepping(tokens), "tokens"), unit="short", width=6, minimum=0),
    ))  # fmt: skip


def hardware() -> Row:
    busy = on_its_gpus("gpu:utilization:ratio", "gpu_utilization_percent", " / 100")
    watts = on_its_gpus("gpu:power:watts", "gpu_power_draw_watts")
    reserved = while_running(f"max by (run) ({rank_raw('training_memory_reserved_bytes')})")
    allocated = while_running(f"max by (run) ({rank_raw('memory_allocation_mb')}) * 1048576")
    return Row("On what hardware?", 9, (
        line("Utilization of its GPUs", "Least, mean and most busy GPU of the run.",
             (f"min by (run) ({busy})", "least"), (f"avg by (run) ({busy})", "mean"),
             (f"max by (run) ({busy})", "most"),
             unit="percentunit", minimum=0, maximum=1, width=8),
        line("Power of its GPUs", "Power of all GPUs of the run together.", (f"sum by (run) ({watts})", "power"),
             unit="watt", minimum=0, width=8),
        line("Memory of its allocator", "Device memory of the fullest rank: handed out, and held.",
             (allocated, "handed out"), (reserved, "held"), unit="bytes", minimum=0, width=8),
    ))  # fmt: skip


def its_own() -> Row:
    told = while_running(f"avg by (run, name) ({rank_raw('training_metric')})")
    return Row("Values of its own", 8, (
        line("What it logs besides", "Values under names of the run's own, mean over the ranks.", (told, "{{name}}"),
             unit="short", width=24),
    ))  # fmt: skip


ENDED = f'training_run_status{{status!="running", {THE_RUN}}}'
FIRING = f'ALERTS{{alertstate="firing", severity=~"page|ticket|info", {THE_RUN}}}'
EVENTS = (
    Event("Started", f"max by (run) (training_start_timestamp_seconds{selector(THE_RUN)}) * 1000", "blue", "started",
          "{{run}}", at_value=True),
    Event("Checkpoints", f"max by (run) (training_last_checkpoint_timestamp_seconds{selector(THE_RUN)}) * 1000",
          "green", "checkpoint", "{{run}}", at_value=True),
    Event("Ended", f"max by (run, status) ({ENDED}) == 1 unless max by (run, status) ({ENDED} offset 1m) == 1",
          "purple", "{{status}}", "{{run}}"),
    # One mark for all ranks: of a large run each may have its own.
    Event("Alerts", f"max by (run, alertname, severity) ({FIRING})", "red", "{{alertname}}", "{{severity}}"),
)  # fmt: skip

DASHBOARD = Dashboard(
    "trainvitals-run", "TrainVitals / Training run", "Is this run learning, is it fast, and what happened when?",
    (JOBS, ONE_RUN), (is_it_well(), learning(), speed(), hardware(), its_own()), EVENTS,
)  # fmt: skip
