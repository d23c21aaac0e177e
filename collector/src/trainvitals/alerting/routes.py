"""Who gets what, when, and what keeps quiet because something else says it already.

route(quiet=True)["routes"][4]  ->  {"receiver": "ticket", "matchers": ['severity="ticket"'], …}

From a fault to a delivered message pass a scrape, a rule's evaluation and the group wait: the waits are short, and so
are the intervals, for which what joins a group that was sent waits.
"""

from typing import Any

Config = dict[str, Any]

QUIET = "quiet-hours"
COLLECTOR_REPEAT_SECONDS = 600
_GROUP = ["alertname", "instance"]
# What befalls a run befalls it on every node: a message, not one a node.
_RUN_GROUP = ["alertname", "run"]
_PLACE = ["instance", "run", "rank", "gpu", "uuid", "mountpoint"]
# Of a run an alert may come from any node, and from rules that have no instance left.
_RUN_PLACE = ["run", "rank", "uuid"]


def route(quiet: bool, deadman: bool, trials: list[str]) -> Config:
    """The root delivers what nothing below it takes."""
    return {
        "receiver": "page", "group_by": _GROUP, **_times("3s", "10s", "4h"),
        "routes": [_folded(), _trial(trials), _watchdog(deadman), _collector(), _ticket(quiet),
                   {"receiver": "nobody", "matchers": ['severity=~"info|none"']},
                   # Whatever else it says, or where it says nothing: nobody has judged it to be less.
                   _child("page", 'severity!~"ticket|info|none"')],
    }  # fmt: skip


def _folded() -> Config:
    """What follows from another of the agent's is told along with that. It is here to keep its twin quiet."""
    return {"receiver": "nobody", "matchers": ['folded=~".+"']}


def _trial(receivers: list[str]) -> Config:
    """A trial goes to each way by itself, so that each can be seen to work."""
    children = [{"receiver": name, "continue": True} for name in receivers]
    return {"receiver": "nobody", "matchers": ['alert_test!=""'], "group_by": ["alert_test"],
            **_times("0s", "10s", "4h"), "routes": children}  # fmt: skip


def _watchdog(deadman: bool) -> Config:
    return {"receiver": "deadman" if deadman else "nobody", "matchers": ['alertname="Watchdog"'],
            "group_by": ["alertname"], **_times("0s", "1m", "1m")}  # fmt: skip


def _collector() -> Config:
    """Everything, quiet hours or not; the repeats tell the collector that it goes on."""
    return {"receiver": "collector", "continue": True, **_times("1s", "5s", f"{COLLECTOR_REPEAT_SECONDS // 60}m")}


def _ticket(quiet: bool) -> Config:
    muted = {"mute_time_intervals": [QUIET]} if quiet else {}
    return {**_times("5s", "30s", "24h"), **_child("ticket", 'severity="ticket"', **muted)}


def _child(receiver: str, matcher: str, **more: Any) -> Config:
    """Alertmanager hands everything down to the routes within one, but for when it is muted."""
    of_runs = {"receiver": receiver, "matchers": ['run!=""'], "group_by": _RUN_GROUP, **more}
    return {"receiver": receiver, "matchers": [matcher], **more, "routes": [of_runs]}


def _times(wait: str, interval: str, repeat: str) -> Config:
    return {"group_wait": wait, "group_interval": interval, "repeat_interval": repeat}


def quiet_interval(start: str, end: str, zone: str) -> Config:
    """A span over midnight is two: Alertmanager has none that ends before it begins."""
    spans = [(start, end)] if start < end else [(start, "24:00"), ("00:00", end)]
    times = [{"start_time": begin, "end_time": stop} for begin, stop in spans if begin != stop]
    return {"name": QUIET, "time_intervals": [{"times": times, "location": zone}]}


# Alertmanager does not tell the end of what ends while it is inhibited. So nothing is that may end before what
# inhibits it: of a host that is gone only what tells that it is gone, of a run only what lasts as long as its hang.
_OF_A_HOST = "AgentDown|TargetMissing|ScrapeShrunk"
_OF_A_HANG = "TrainingStalled|TrainingThroughputRegression"


def inhibitions() -> list[Config]:
    """Each only where both speak of the same place."""
    return [*_twins(), _lesser(),
            _inhibit(['alertname="TrainingHangSuspected"', 'run!=""'], [f'alertname=~"{_OF_A_HANG}"'],
                     ["instance", "run"]),
            _inhibit(['alertname="HostDown"', 'instance!=""'], [f'alertname=~"{_OF_A_HOST}"'], ["instance"]),
            _inhibit(['alertname="HostDiskFull"'], ['alertname="HostDiskFillingUp"'],
                     ["instance", "mountpoint", "device"])]  # fmt: skip


def _twins() -> list[Config]:
    """The agent sees at once what a rule sees later. Severities are equal too: an agent's ticket must not keep a
    rule's page from anybody."""
    agent, rule = 'source="agent"', 'source="prometheus"'
    return [_inhibit([agent, 'run!=""'], [rule, 'run!=""'], ["alertname", "severity", *_RUN_PLACE]),
            _inhibit([agent, 'run=""'], [rule, 'run=""'], ["alertname", "severity", *_PLACE])]  # fmt: skip


def _lesser() -> Config:
    """Of one name and place the page says it all."""
    page, lesser = 'severity="page"', 'severity=~"ticket|info"'
    return _inhibit([page], [lesser], ["alertname", *_PLACE])


def _inhibit(source: list[str], target: list[str], equal: list[str]) -> Config:
    return {"source_matchers": source, "target_matchers": target, "equal": equal}
