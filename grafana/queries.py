"""PromQL that several dashboards share: what is chosen above them, and the fall back from recorded to raw series.

    gpu("gpu:temperature:celsius", "gpu_temperature_celsius")
    -> gpu:temperature:celsius{CHOSEN} or on (instance, uuid) gpu_temperature_celsius{job=~"$job", CHOSEN}

With our rules every exporter's GPUs are shown, without them those that our collector reads.
"""

JOB = 'job=~"$job"'
NODE = 'instance=~"$instance"'
# What Grafana puts in for a variable stands between backquotes, where PromQL reads all but a backquote as it is: for a
# name with quotes or a backslash no other of Grafana's formats does. None does for a backquote.
RUN = "run=~`${run:regex}`"
THE_NODE = "instance=`${instance:raw}`"
THE_RUN = "run=`${run:raw}`"
GPU = f'{THE_NODE}, gpu=~"$gpu"'
RATE = "[$__rate_interval]"
# What a rank does before it waits for the others: only there a straggler differs from its peers.
OWN_WORK = 'phase=~"data_wait|forward"'


def gpu(recorded: str, raw: str, scale: str = "", split: str = "", only: str = "", raw_only: str = "") -> str:
    """`split` tells a GPU's series of one name apart; `only` narrows both sides, `raw_only` the collector's."""
    match = f"instance, uuid, {split}" if split else "instance, uuid"
    here = selector(only, GPU)
    return f"{recorded}{here} or on ({match}) {raw}{selector(raw_only, JOB, only, GPU)}{scale}"


def selector(*parts: str) -> str:
    return "{" + ", ".join(part for part in parts if part) + "}"


def has_status(name: str) -> str:
    return rank_raw("training_run_status", f'status="{name}"')


def while_running(value: str) -> str:
    """What a run last told stays where it can be read after its end: here it stops with the run."""
    return f"({value}) and on (run) max by (run) ({has_status('running')}) == 1"


def while_stepping(value: str) -> str:
    """A rate that a run tells with each step: 0 while no step ends, for what was last told no longer holds."""
    return f"({value}) * on (run) (sum by (run) ({per_second('training_steps_total')}) > bool 0)"


def of_run(recorded: str, raw: str, how: str = "sum", by: str = "run") -> str:
    """A run may be spread over nodes: `how` makes one value of it."""
    return f"{how} by ({by}) ({recorded}{{{THE_RUN}}}) or on ({by}) ({raw})"


def rank_raw(name: str, only: str = "") -> str:
    return name + selector(only, JOB, THE_RUN)


def per_second(name: str, only: str = "") -> str:
    return f"rate({rank_raw(name, only)}{RATE})"


def phase_share(only: str, by: str = "run") -> str:
    """Share of wall time in some phases."""
    part = per_second("training_phase_seconds_total", only)
    return f"sum by ({by}) ({part}) / (sum by ({by}) ({per_second('training_phase_seconds_total')}) > 0)"


def step_seconds(by: str) -> str:
    spent = per_second("training_step_duration_seconds_sum")
    return f"sum by ({by}) ({spent}) / (sum by ({by}) ({per_second('training_step_duration_seconds_count')}) > 0)"


def own_seconds_per_step() -> str:
    work = per_second("training_phase_seconds_total", OWN_WORK)
    return f"sum by (run, rank) ({work}) / (sum by (run, rank) ({per_second('training_steps_total')}) > 0)"


def straggling() -> str:
    """As the rules have it: against the median of all, of two the faster."""
    own = own_seconds_per_step()
    middle = f"quantile by (run) (0.5, {own}) and on (run) count by (run) ({own}) != 2 or on (run) min by (run) ({own})"
    return f"({own}) / on (run) group_left () ({middle})"


def once_a_rank(name: str, split: str = "rank") -> str:
    """Of all ranks together: where storage is shared, rank 0's machine tells all, each other one its own once more."""
    return f"sum by (run) (max by (run, {split}) ({rank_raw(name)}))"


def firing(only: str) -> str:
    """Counts alerts, one for all ranks of a run; without rules there is no Watchdog, and no reassuring 0 either."""
    alerts = f'ALERTS{{alertstate="firing", {only}}}'
    watchdog = 'ALERTS{alertname="Watchdog", alertstate="firing"}'
    return f"count(count by (alertname, instance, run, gpu) ({alerts})) or 0 * count({watchdog})"


def places() -> str:
    """Where each rank runs: rank 0's machine tells of those of others too, if they tell them themselves."""
    told, first = rank_raw("training_gpu_info"), rank_raw("training_last_step_timestamp_seconds", 'rank="0"')
    elsewhere = f"{told} and on (instance, run) {first} and on (run, rank) ({told} unless on (instance, run) {first})"
    return f"max by (run, rank, instance, gpu) ({told} unless on (instance, run, rank) ({elsewhere}))"


def on_its_gpus(recorded: str, raw: str, scale: str = "") -> str:
    """A GPU's value for each rank that runs on it."""
    value = f"{recorded} or on (instance, uuid) {raw}{selector(JOB)}{scale}"
    ranks = f"max by (instance, uuid, run, rank, gpu) ({rank_raw('training_gpu_info')})"
    return while_running(f"{ranks} * on (instance, uuid) group_left () ({value})")
