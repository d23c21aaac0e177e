"""What others than this agent tell of: alerts that came by Alertmanager, and what that is to keep quiet too.

others(agent, now)   ->   alerts that go on, but for this agent's own, of which it knows more itself
wanted(agent, now)   ->   the silences that Alertmanager is to have
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from trainvitals.alerting import received
from trainvitals.alerting.received import moment
from trainvitals.detect.quieting import Acknowledgement, identity_of
from trainvitals.journal.record import Record, timestamp_at
from trainvitals.notify.matchers import of_alert, of_finding, of_silence
from trainvitals.notify.silencer import STAYS_SECONDS, Wanted

if TYPE_CHECKING:
    from trainvitals.agent.service import Agent

# An acknowledgement holds as long as its finding does: Alertmanager is told so again and again, and rings where no
# agent says so any more.
LEASE_SECONDS, ENOUGH_SECONDS = 900.0, 600.0
NO_WAY = ("Alertmanager is none of this agent's ways (TRAINVITALS_NOTIFY): what Prometheus's rules find of the same it "
          "tells all the same")  # fmt: skip


def others(agent: "Agent", now: float) -> list[Record]:
    """Of what a silence covers Alertmanager tells the collector nothing either: it is asked."""
    told = agent.received.view(now)["firing"] if agent.received else []
    kept = [alert for silencer in agent.silencers for one in silencer.silenced() if (alert := _alert(one))]
    found = {received.identity(one): one for one in (*told, *kept)}
    quiet = {received.identity(one) for one in kept}
    return [one for name, one in found.items()
            if not is_own(one, agent.host) and (name in quiet or not _is_over(agent, name, one))]  # fmt: skip


def is_own(alert: Record, host: str) -> bool:
    return (alert["labels"].get("source"), alert["labels"].get("instance")) == ("agent", host)


def _is_over(agent: "Agent", name: str, alert: Record) -> bool:
    """What somebody acknowledged here, and Alertmanager keeps quiet no more."""
    known = agent.quiet.kept.acknowledged.get(name)
    if known is None or not agent.silencers:
        return False
    heard = max(moment(known.at) or 0.0, moment(alert.get("timestamp")) or 0.0)
    return min(silencer.listed_at for silencer in agent.silencers) > heard + STAYS_SECONDS


def _alert(content: Any) -> Record | None:
    """As its webhook would have told it."""
    labels, annotations, starts = content.get("labels"), content.get("annotations"), moment(content.get("startsAt"))
    if not isinstance(labels, dict) or starts is None or not labels.get("alertname"):
        return None
    return {"event": "alert", "status": "firing", "name": labels["alertname"], "starts": timestamp_at(starts),
            "fingerprint": str(content.get("fingerprint")), "labels": labels,
            "annotations": annotations if isinstance(annotations, dict) else {}}  # fmt: skip


def wanted(agent: "Agent", now: float) -> list[Wanted]:
    changes, kept = agent.open(), agent.quiet.kept
    known = {identity_of(change): kept.acknowledgement(
        identity_of(change), change.finding.key, change.finding.severity, timestamp_at(change.opened))
        for change in changes}  # fmt: skip
    found = [*_silences(agent, now), *_of_others(agent, now)]
    found += [_lease(one, identity_of(change), of_finding(change, agent.host), now)
              for change in changes if (one := known[identity_of(change)])]  # fmt: skip
    names = {one.key for one in found}
    loud = {change.finding.key for change in changes if not known[identity_of(change)]}
    left = [one for one in kept.acknowledged.values() if one.id not in names and _may_run_out(agent, one, loud)]
    return [*found, *(Wanted(one.id, (), 0.0, 0.0) for one in left)]


def _silences(agent: "Agent", now: float) -> Iterator[Wanted]:
    for one in agent.quiet.kept.silences.values():
        if (until := one.ends()) > now:
            yield Wanted(one.id, of_silence(one.named, agent.host), until, until - 1, _words(one.note, one.by))


def _of_others(agent: "Agent", now: float) -> Iterator[Wanted]:
    for alert in others(agent, now):
        name = received.identity(alert)
        if known := agent.quiet.kept.acknowledged.get(name):
            yield _lease(known, name, of_alert(alert["labels"]), now)


def _lease(one: Acknowledgement, name: str, matchers: Any, now: float) -> Wanted:
    return Wanted(name, matchers, now + LEASE_SECONDS, now + ENOUGH_SECONDS, _words(one.note, one.by))


def _may_run_out(agent: "Agent", one: Acknowledgement, loud: set[Any]) -> bool:
    """A rule's alert ends a little later than the agent's finding. Not where the same opened anew, which is news; and
    of another's alert nobody knows before Alertmanager was asked."""
    if not one.covers:
        return not all(silencer.listed_at for silencer in agent.silencers)
    return (one.covers[0].kind, one.covers[0].place) not in loud


def _words(note: str, by: str) -> str:
    return " ".join(filter(None, (note or "from the page of TrainVitals", by and f"({by})")))


def problems(agent: "Agent", now: float) -> list[str]:
    """What a wrong setting tells nobody, and where Alertmanager may tell what was acknowledged or silenced here."""
    found = [*agent.refused, *(silencer.problem for silencer in agent.silencers if silencer.problem)]
    if agent.silencers or not agent.received:
        return found
    kept, known = agent.quiet.kept, agent.received.view(now)
    is_quiet = kept.acknowledged or any(one.ends() > now for one in kept.silences.values())
    is_there = any(not is_own(one, agent.host) for one in (*known["firing"], *known["resolved"]))
    return [NO_WAY] if is_quiet and is_there else []
