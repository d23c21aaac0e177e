"""A view as the parts of the screen: a pure function of what is known and how large the screen is.

draw(view, 80, 24)  ->  {"first": [line], "verdict": […], "gpus": […], "graphs": […], "run": […], "below": […], …}
"""

from trainvitals.tui import below, gpu_table, graphs, head, help_page, lines, run_panel
from trainvitals.tui.arrange import BANDS, heights
from trainvitals.tui.figures import UNKNOWN
from trainvitals.tui.lines import Line
from trainvitals.tui.view import View

Parts = dict[str, list[Line]]
NAMES = ("first", "verdict", "gpus", "graphs", "run", "below", "last", "help")


def draw(view: View, cells: int, height: int) -> Parts:
    """Every part has as many lines as it gets, and every line is as wide as the screen."""
    if view.helping:
        return {**{name: [] for name in NAMES}, "help": _sized(help_page.lines(), cells, height)}
    gpu = view.chosen_gpu
    lower = 1 + max(2 * len(view.findings), len(gpu.processes) if gpu else 0, 1)
    run = _run(view, cells)
    got = heights(height, gpus=max(1, len(view.gpus)), verdict=head.verdict_height(view, cells), run=len(run),
                  below=lower)  # fmt: skip
    parts = {
        "first": [head.first(view, cells)],
        "verdict": head.verdict(view, cells, got.verdict),
        "gpus": _gpus(view, cells, got.gpus),
        "graphs": _graphs(view, cells, got.graphs // BANDS),
        "run": run,
        "below": below.rows(view.findings, gpu, view.picture.at, cells, got.below),
        "last": [head.last(view, cells)],
    }
    sizes = {"first": 1, "last": 1, **got._asdict()}
    return {name: _sized(parts.get(name, []), cells, sizes.get(name, 0)) for name in NAMES}


def _gpus(view: View, cells: int, height: int) -> list[Line]:
    if view.gpus:
        return gpu_table.rows(view.gpus, view.gpu_place, view.users, cells, height)
    if view.filter and view.picture.gpus:
        return [lines.line((f"  No GPU fits /{view.filter}", "dim"))]
    if view.asked.gpus and view.picture.gpus:
        there = ", ".join(str(gpu.number) for gpu in view.picture.gpus)
        asked = ", ".join(map(str, view.asked.gpus))
        return [lines.line((f"  No GPU {asked} answers; these do: {there}", "warn"))]
    why = "; ".join(("No GPU answers", *view.picture.problems))
    return [lines.line((f"  {why if view.knows else UNKNOWN}", "dim"))]


def _graphs(view: View, cells: int, height: int) -> list[Line]:
    """Three of the GPU, and below them its power and the run's loss."""
    gpu, run = view.chosen_gpu, view.chosen_run
    upper, lower = graphs.widths(cells, (1, 1, 1)), graphs.widths(cells, (1, 2))
    loss = graphs.loss_course(run, view.history, view.now, lower[1])
    if gpu is None:
        return graphs.band([loss], cells, height * BANDS)
    courses = graphs.gpu_courses(gpu, view.history, view.now, [*upper, lower[0]])
    return [*graphs.band(courses[:3], cells, height), *graphs.band([courses[3], loss], cells, height)]


def _run(view: View, cells: int) -> list[Line]:
    run, now = view.chosen_run, view.picture.at
    phases = view.history.phases(run.run, view.now) if run else {}
    wanted = view.asked.run or (f"/{view.filter}" if view.filter else "")
    return run_panel.rows(run, (view.run_place + 1, len(view.runs)), phases, now, cells, wanted)


def _sized(part: list[Line], cells: int, height: int) -> list[Line]:
    return [lines.fit(one, cells) for one in [*part, *[()] * height][:height]]
