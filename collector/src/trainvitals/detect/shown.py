"""A finding in the shape of an alert, as page and terminal show those."""

from collections.abc import Sequence

from trainvitals.detect.advice import runbook
from trainvitals.detect.finding import Finding
from trainvitals.detect.quieting import identity
from trainvitals.journal.record import Record, timestamp_at


def as_alert(finding: Finding, opened: float, host: str, evidence: Sequence[Finding] = ()) -> Record:
    place = finding.place.labels()
    labels = {"alertname": finding.kind, "severity": finding.severity, "source": "agent", "instance": host, **place}
    more = [f"With it: {each.kind}: {each.what}." for each in evidence]
    annotations = {"summary": finding.what, "description": " ".join([finding.todo, *more]),
                   "runbook_url": runbook(finding.kind)}  # fmt: skip
    starts = timestamp_at(opened)
    return {"id": identity(*finding.key, starts), "name": finding.kind, "status": "firing", "starts": starts,
            "labels": labels, "fingerprint": " ".join([finding.kind, *place.values()]),
            "annotations": annotations}  # fmt: skip
