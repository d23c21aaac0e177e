"""The chosen run in three lines: what it is, how far it has come, what it tells.

─ Run demo-gpt running ─ 1 of 2 ─ 8 ranks ─ began 27 min ago ──────
━━━━╸───────── 31%  6,200 of 20,000 steps  3.88/s  ETA 59 min  $14.40 at $32/h
loss 1.823 falling   lr 0.0003   gradient 0.62   42.1k tokens/s   data 2%  forward 40%  backward 48%
"""

from collections.abc import Mapping, Sequence

from trainvitals.tui import levels, lines
from trainvitals.tui.figures import UNKNOWN, count, dollars, known, large, odd, short, span, whole
from trainvitals.tui.history import told_of
from trainvitals.tui.levels import DIM
from trainvitals.tui.lines import Line, Piece
from trainvitals.tui.picture import Run

_NOBODY = "No run here yet. Three lines in a training loop show it: docs/sdk.md"
_BAR = 24
Progress = Mapping[str, float | str]


def rows(run: Run | None, place: tuple[int, int], phases: Mapping[str, float], now: float | None, cells: int,
         wanted: str = "") -> list[Line]:  # fmt: skip
    """`place` is the run's number and how many there are; `now` by the clock of who tells, None where nobody does;
    `wanted` was asked for."""
    if run is None:
        words = UNKNOWN if now is None else f"No run {wanted} here." if wanted else _NOBODY
        return [lines.rule(lines.line(("Run", "title")), cells), lines.fit(lines.line((words, "dim")), cells)]
    if now is None:
        return [lines.rule(lines.line((f"Run {run.run}", "title")), cells), lines.line((UNKNOWN, "dim")), ()]
    return [lines.rule(_title(run, place, now), cells), lines.fit(_progress(run, now, cells), cells),
            lines.fit(_values(run, phases), cells)]  # fmt: skip


def _title(run: Run, place: tuple[int, int], now: float) -> Line:
    level = levels.STATUSES.get(run.status, DIM)
    at, of = place
    began = run.values.get("start_timestamp_seconds")
    size = run.world_size or str(len(run.ranks))
    about = ["" if of < 2 else f"{at} of {of}", f"{size} rank{'s' * (size != '1')}", run.framework,
             "" if began is None else f"began {span(now - began)} ago"]  # fmt: skip
    return lines.line((f"Run {run.run} ", "title"), (f"{level.sign.strip()}{run.status or UNKNOWN}", level.style),
                      (" ─ " + " ─ ".join(filter(None, about)), "dim"))  # fmt: skip


def _progress(run: Run, now: float, cells: int) -> Line:
    step = _number(run.progress, "step") or told_of(run).get("step")
    planned = _number(run.progress, "planned_steps") or run.values.get("planned_steps")
    share = step / planned if step is not None and planned else None
    done = f"step {known(step, count)}" if planned is None else f"{known(step, count)} of {count(planned)} steps"
    words = "  ".join([done, *_lag(run, now), *_pace(run.progress), *_cost(run.progress)])
    if share is None:
        return lines.line(words)
    return (*lines.bar(share, min(_BAR, cells // 6), "good"), (f" {whole(100 * share)}%  {words}", ""))


def _pace(progress: Progress) -> list[str]:
    pace, left = _number(progress, "steps_per_second"), _number(progress, "eta_seconds")
    found = [] if pace is None else [f"{span(1 / pace)} a step" if 0 < pace < 0.1 else f"{short(pace)}/s"]
    return [*found, *([] if left is None else [f"ETA {span(left)}"])]


def _lag(run: Run, now: float) -> list[str]:
    """Of a run that lives: how long no step came, and how far its ranks are apart."""
    last = [rank.values["last_step_timestamp_seconds"] for rank in run.ranks
            if "last_step_timestamp_seconds" in rank.values]  # fmt: skip
    steps = sorted(rank.values["step"] for rank in run.ranks if "step" in rank.values)
    apart = [f"ranks at {count(steps[0])} to {count(steps[-1])}"] if steps and steps[0] != steps[-1] else []
    quiet = [f"last step {span(now - max(last))} ago"] if last and now - max(last) >= 10.0 else []
    return [*quiet, *apart]


def _cost(progress: Progress) -> list[str]:
    cost, rate = _number(progress, "cost_dollars"), _number(progress, "dollars_per_hour")
    if cost is None:
        return []
    return [dollars(cost) + ("" if rate is None else f" at {dollars(rate).removesuffix('.00')}/h")]


def _values(run: Run, phases: Mapping[str, float]) -> Line:
    told = told_of(run)
    trend = run.progress.get("loss_trend", "")
    found = [
        _value("loss", told.get("loss"), f" {trend}" if isinstance(trend, str) and trend else ""),
        _value("lr", told.get("learning_rate")),
        _value("gradient", told.get("gradient_norm")),
        _rate(told, "tokens_per_second", " tokens/s") or _rate(told, "throughput_samples_per_sec", " samples/s"),
    ]
    return (*(piece for pieces in found if pieces for piece in (*pieces, ("   ", ""))), *_shares(phases))


def _value(name: str, value: float | None, after: str = "") -> Sequence[Piece]:
    if value is None:
        return ()
    words = (f"{odd(value)} !!", "bad") if odd(value) else (short(value), "")
    return ((f"{name} ", "dim"), words, (after, "dim"))


def _rate(told: Mapping[str, float], field: str, unit: str) -> Sequence[Piece]:
    return ((large(told[field]), ""), (unit, "dim")) if field in told else ()


def _shares(phases: Mapping[str, float]) -> Sequence[Piece]:
    """The largest first; crumbs are left out."""
    parts = sorted(((share, name) for name, share in phases.items() if share >= 0.01), reverse=True)
    return (("  ".join(f"{name.replace('_', ' ')} {whole(100 * share)}%" for share, name in parts), "dim"),)


def _number(progress: Progress, name: str) -> float | None:
    value = progress.get(name)
    return value if isinstance(value, float) else None
