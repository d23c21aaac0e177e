"""Whether all is well, in one line of words, for who looks from three metres away.

verdict(view)  ->  {"state": "ticket", "first": "GPU 3 near its heat limit", "rest": "gemma: step 12,400 of 20,000, …",
                    "words": "gemma: step 12,400 of 20,000, 3.1 steps/s, loss 1.82 and falling, ETA 41 min; "
                             "GPU 3 near its heat limit"}

`view` is the snapshot as page and programs read it: `timestamp`, `runs`, `gpus`, `sources`, `problems`, and under
`alerts` what is open. Words of others, as names of runs, are text; whoever shows them escapes them.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trainvitals.agent.finding_words import GPU_HEAT, finding_words, short
from trainvitals.alerting.received import how_soft
from trainvitals.errors import plain
from trainvitals.model import SEVERITIES

NAMED_RUNS, NAMED_FINDINGS = 3, 3
_HEAT = frozenset(("sw_thermal_slowdown", "hw_thermal_slowdown"))
_POWER = frozenset(("hw_power_brake",))
_UNITS = ((86400, 3600, "day", "days", "h"), (3600, 60, "h", "h", "min"))
View = Mapping[str, Any]


def verdict(view: View) -> dict[str, str]:
    problems: Sequence[str] = view["problems"]
    if view["timestamp"] is None:
        words = plain("; ".join(problems))
        words, state = words or "starting: no reading has come yet", "problem" if words else "starting"
        return {"state": state, "words": words, "first": words, "rest": ""}
    firing = view["alerts"]["firing"]
    # What somebody silenced is told no more than that it is there.
    heard = sorted((alert for alert in firing if not alert.get("silenced")), key=lambda alert: _weight(view, alert))
    found, state = list(_findings(view, heard)), _state(heard, problems)
    parts = [*_runs(view, heard), *found, _silenced(len(firing) - len(heard)), *_throttled(view, firing), *problems]
    told = [plain(part) for part in parts if part]
    first = told.index(plain({"page": found, "problem": problems, "ticket": found}.get(state, parts)[0]))
    return {"state": state, "words": "; ".join(told), "first": told[first],
            "rest": "; ".join(told[:first] + told[first + 1 :])}  # fmt: skip


def _weight(view: View, alert: View) -> tuple[int, bool]:
    """The worst first. What befell a run that has ended can wait for what goes on."""
    run = alert["labels"].get("run")
    return how_soft(alert), any(one["run"] == run and one["status"] != "running" for one in view["runs"])


def _state(firing: Sequence[View], problems: Sequence[str]) -> str:
    """A page outweighs what is wrong with the monitoring itself, and that a ticket."""
    severities = {alert["labels"].get("severity") for alert in firing}
    return "page" if "page" in severities else "problem" if problems else "ticket" if "ticket" in severities else "well"


def _runs(view: View, heard: Sequence[View]) -> Iterator[str]:
    """Those that are worst first."""
    worst = {alert["labels"].get("run"): how_soft(alert) for alert in reversed(heard)}
    live = [run for run in view["runs"] if run["status"] == "running"]
    live.sort(key=lambda run: worst.get(run["run"], len(SEVERITIES)))
    if not live:
        yield f"{_machine(view)}, no run is live"
    if len(live) > 1:
        yield f"{len(live)} runs"
    yield from (run_words(run, is_alone=len(live) == 1) for run in live[:NAMED_RUNS])
    if len(live) > NAMED_RUNS:
        yield f"and {len(live) - NAMED_RUNS} more"


def run_words(run: View, is_alone: bool = True) -> str:
    """`gemma: step 12,400 of 20,000, 3.1 steps/s, loss 1.82 and falling, ETA 41 min`; shorter beside others."""
    told = run["progress"]
    parts = [_steps(told), _speed(told) if is_alone else "", _loss(told), _eta(told)]
    return f"{short(run['run'])}: {', '.join(filter(None, parts)) or 'no step yet'}"


def _steps(told: View) -> str:
    step, planned = told.get("step"), told.get("planned_steps")
    if not isinstance(step, (int, float)):
        return ""
    return f"step {step:,.0f} of {planned:,.0f}" if isinstance(planned, (int, float)) else f"step {step:,.0f}"


def _speed(told: View) -> str:
    speed = told.get("steps_per_second")
    if not speed:
        return ""
    return f"{speed:.3g} steps/s" if speed >= 1 else f"{1 / speed:.3g} s a step"


def _loss(told: View) -> str:
    loss, trend = told.get("loss"), told.get("loss_trend")
    if not isinstance(loss, (int, float)):
        return f"loss {loss}" if loss else ""
    return f"loss {loss:.3g}" + (f" and {trend}" if trend else "")


def _eta(told: View) -> str:
    return f"ETA {span(told['eta_seconds'])}" if "eta_seconds" in told else ""


def span(seconds: float) -> str:
    """`41 min`, `3 h 20 min`, `2 days 4 h`."""
    for size, finer, unit, units, less in _UNITS:
        if seconds >= size:
            count, rest = divmod(round(seconds / finer), size // finer)
            return f"{count} {units if count > 1 else unit}" + (f" {rest} {less}" if rest else "")
    return f"{seconds / 60:.0f} min" if seconds >= 60 else f"{seconds:.0f} s"


def _machine(view: View) -> str:
    if count := len(view["gpus"]):
        return f"{count} GPU{'s' * (count > 1)} answer{'s' * (count == 1)}"
    why = next((source["problem"] for source in view["sources"].values() if source["up"] is False), "")
    return why or "no GPU here"


def _findings(view: View, firing: Sequence[View]) -> Iterator[str]:
    """What two rules say in the same words is told once."""
    hot = set(_held(view, _HEAT))
    told = dict.fromkeys(finding_words(alert, hot) for alert in firing
                         if alert["labels"].get("severity") in ("page", "ticket"))  # fmt: skip
    yield from list(told)[:NAMED_FINDINGS]
    if len(told) > NAMED_FINDINGS:
        yield f"and {len(told) - NAMED_FINDINGS} more"


def _silenced(count: int) -> str:
    return f"{count} silenced alert{'s' * (count > 1)}" if count else ""


def _throttled(view: View, firing: Sequence[View]) -> Iterator[str]:
    """What a GPU says of itself before it is a finding."""
    told = {str(alert["labels"].get("gpu")) for alert in firing if alert["name"] in GPU_HEAT}
    for words, reasons in (("throttled by heat", _HEAT), ("slowed down for want of power", _POWER)):
        if found := [number for number in _held(view, reasons) if number not in told]:
            yield f"GPU{'s' * (len(found) > 1)} {', '.join(found)} {words}"


def _held(view: View, reasons: frozenset[str]) -> list[str]:
    """The numbers of the GPUs that say so of themselves."""
    return [str(gpu["gpu"]) for gpu in view["gpus"] if reasons & set(gpu.get("throttle_active") or ())]
