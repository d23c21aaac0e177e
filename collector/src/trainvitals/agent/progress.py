"""How far a run is: its speed of late, when it will be done, where its loss goes, what it has cost.

progress(state, now, dollars_per_hour=12.0)
->  {"steps_per_second": 3.1, "loss_trend": "falling", "eta_seconds": 2452.0, "dollars_per_hour": 12.0, …}

What is not known is not in it: a run that has stopped making steps has neither speed nor end in sight.
"""

import math
from typing import Any

from trainvitals.agent.run_state import RankState, RunState
from trainvitals.journal.record import as_number, seconds


def progress(state: RunState, now: float, dollars_per_hour: float | None = None) -> dict[str, Any]:
    rank = state.ranks.get(min(state.ranks, default=-1))
    speed = None if rank is None or state.ended is not None else rank.pace.steps_per_second(now)
    told: dict[str, Any] = {"steps_per_second": speed, "loss_trend": _trend(state)}
    planned = as_number(state.info.get("planned_steps"))
    if rank and rank.pace.last and speed and planned is not None and math.isfinite(planned):
        told["eta_seconds"] = max(0.0, planned - rank.pace.last.step) / speed
    if dollars_per_hour is not None:
        told |= {"dollars_per_hour": dollars_per_hour, "cost_dollars": _cost(state, rank, now, dollars_per_hour)}
    return {name: value for name, value in told.items() if value is not None}


def _trend(state: RunState) -> str | None:
    """Of the first rank that tells a loss."""
    return next((trend for _, rank in sorted(state.ranks.items()) if (trend := rank.pace.loss_trend())), None)


def _cost(state: RunState, rank: RankState | None, now: float, dollars_per_hour: float) -> float | None:
    """From its start on, but for the time between two processes of it."""
    start = seconds(state.info.get("start"))
    if start is None:
        return None
    stamps = state.info.get("resumed")
    resumed = [when for stamp in (stamps if isinstance(stamps, list) else ()) if (when := seconds(stamp)) is not None]
    pauses = list(rank.pace.pauses) if rank else []
    apart = sum(ended - began for began, ended in pauses if any(began <= when <= ended for when in resumed))
    return max(0.0, (state.ended or now) - start - apart) / 3600 * dollars_per_hour
