"""What several dashboards are put together from: variables, judgements by colour, links and tables."""

from collections.abc import Sequence
from typing import Any

from grafana.lib import Column, Panel, Query, Steps, Variable
from grafana.looks import COLORED_CELL
from grafana.queries import THE_NODE
from grafana.thresholds import threshold

Json = dict[str, Any]

OF_JOB = 'job=~"$job|"'
ANY_GPU = "gpu:utilization:ratio|gpu_utilization_percent|gpu:temperature:celsius|gpu_temperature_celsius"

JOBS = Variable("job", "Job", "label_values(trainvitals_build_info, job)")
INSTANCES = Variable("instance", "Node", f'label_values({{__name__=~"{ANY_GPU}|up", {OF_JOB}}}, instance)')
ONE_INSTANCE = Variable(
    "instance", "Node", f'label_values({{__name__=~"{ANY_GPU}", {OF_JOB}}}, instance)', several=False
)
GPUS = Variable("gpu", "GPU", f'label_values({{__name__=~"{ANY_GPU}", {OF_JOB}, {THE_NODE}}}, gpu)')
RUNS = Variable("run", "Run", 'label_values(training_run_info{job=~"$job"}, run)')
# The run that was started last comes first.
ONE_RUN = Variable(
    "run",
    "Run",
    'query_result(sort_desc(max by (run) (training_start_timestamp_seconds{job=~"$job"})))',
    several=False,
    pick='/run="(.+)"\\}/',
)

NEUTRAL = Steps("blue")
# Any at all is bad.
NONE_ALLOWED = Steps("green", ((1, "red"),))
NONE_WANTED = Steps("green", ((1, "orange"),))


def rising(ticket: float, page: float | None = None) -> Steps:
    """Bad from `ticket` upwards, and worse from `page`."""
    above = [(ticket, "orange")] if page is None else [(ticket, "orange"), (page, "red")]
    return Steps("green", tuple(above))


def over_whole(name: str) -> Steps:
    """Bad above a number of whole degrees, which is from the next one on."""
    return rising(threshold(name) + 1)


def falling(ticket: float, bad: str = "orange") -> Steps:
    return Steps(bad, ((ticket, "green"),))


def link(title: str, uid: str, here: Sequence[Variable], variable: str, column: str) -> Json:
    """To another dashboard with the time and all that is chosen here, but `variable` as `column` of the row says."""
    given = f"var-{variable}=${{__data.fields.{column}:percentencode}}"
    kept = [f"${{{each.name}:queryparam}}" for each in here if each.name != variable]
    url = "&".join((f"/d/{uid}?${{__url_time_range}}", "var-datasource=${datasource}", *kept, given))
    return {"title": title, "url": url, "targetBlank": False}


def node_link(here: Sequence[Variable]) -> Json:
    return link("The GPUs of this node", "trainvitals-gpu", here, "instance", "Node")


def run_link(here: Sequence[Variable]) -> Json:
    return link("This run", "trainvitals-run", here, "run", "Run")


def ranks_link(here: Sequence[Variable]) -> Json:
    return link("The ranks of this run", "trainvitals-ranks", here, "run", "Run")


def stat(title: str, description: str, expr: str, **settings: Any) -> Panel:
    settings = {"width": 4, "steps": NEUTRAL, **settings}
    return Panel(title, description, (Query(expr, settings.pop("legend", ""), instant=True),), kind="stat", **settings)


def line(title: str, description: str, *queries: tuple[str, str], **settings: Any) -> Panel:
    return Panel(title, description, tuple(Query(expr, legend) for expr, legend in queries), **settings)


def text(title: str, description: str, content: str, width: int = 24) -> Panel:
    return Panel(title, description, kind="text", width=width, options={"content": content})


def judged(name: str, unit: str, steps: Steps, **more: Any) -> Column:
    """A column in colours of its own."""
    return Column(name, {"unit": unit, "thresholds": steps.json(), "custom.cellOptions": COLORED_CELL, **more})


def shown(name: str, unit: str, **more: Any) -> Column:
    return Column(name, {"unit": unit, **more})


def linked(name: str, *links: Json) -> Column:
    return Column(name, {"links": list(links)})


def table(
    title: str,
    description: str,
    key: dict[str, str],
    values: dict[str, str],
    worst: str,
    ascending: bool = False,
    **more: Any,
) -> Panel:
    """One line for each `key` (label -> heading), a column for each of `values` (heading -> PromQL), worst first."""
    queries = tuple(Query(expr, table=True) for expr in values.values())
    names = {f"Value #{chr(ord('A') + at)}": heading for at, heading in enumerate(values)}
    if len(values) == 1:
        names = {"Value": next(iter(values))}
    order = {name: at for at, name in enumerate([*key, *names])}
    organized = {"excludeByName": {"Time": True}, "indexByName": order, "renameByName": {**key, **names}}
    return Panel(
        title, description, queries, kind="table",
        transformations=({"id": "merge", "options": {}}, {"id": "organize", "options": organized}),
        options={"sortBy": [{"displayName": worst, "desc": not ascending}]},
        **{"width": 24, **more},
    )  # fmt: skip
