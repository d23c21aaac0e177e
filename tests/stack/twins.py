"""A run that is in trouble for a moment, of which the collector's agent and a rule tell, each by itself."""

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.alerting.support import Recorder
from tests.stack.support import Stack, fetched, training, wait_for
from trainvitals.journal.record import seconds

# Twenty seconds of trouble, and a run that goes on well; of what has no end of its own no longer than need be.
RUN = """
import math, time, trainvitals
with trainvitals.start("twins", config={"alert_thresholds": {"event_seconds": 60}}) as run:
    for step in range(6000):
        is_bad = 150 <= step < 250
        run.log(loss=math.nan if is_bad else 2.0 * 0.999**step, gradient_norm=20.0 if is_bad else 1.0, step=step)
        time.sleep(0.2)
"""
KINDS = ("TrainingNonFinite", "TrainingGradientNormHigh")
# A finding stays for three minutes, and its alert as long again.
ENDS_SECONDS = 480.0


@contextmanager
def in_trouble(stack: Stack, recorder: Recorder) -> Iterator[None]:
    """From when both tell of it, and the rule in vain."""
    trainer = training(stack, RUN)
    try:
        wait_for(lambda: all(_states(stack, kind) == {"agent": "active", "prometheus": "suppressed"} for kind in KINDS),
                 120, tell=lambda: (messages(recorder), stack.alerts()))  # fmt: skip
        yield
    finally:
        trainer.kill()
        trainer.wait(10)


def wait_for_ends(stack: Stack, recorder: Recorder) -> None:
    wait_for(lambda: {each["name"] for each in messages(recorder) if each["status"] == "resolved"} >= {*KINDS},
             ENDS_SECONDS, 1, lambda: messages(recorder))  # fmt: skip
    # What came too late to be in the first message would be a second one by now.
    wait_for(lambda: not any(_states(stack, kind) for kind in KINDS), 120)


def _states(stack: Stack, kind: str) -> dict[str, str]:
    """Of the run's alerts of that name, by who says it."""
    every = fetched(f"{stack.url('ALERTMANAGER_PORT')}/api/v2/alerts")
    return {one["labels"]["source"]: one["status"]["state"] for one in every
            if (one["labels"]["alertname"], one["labels"].get("run")) == (kind, "twins")}  # fmt: skip


def messages(recorder: Recorder) -> list[dict[str, Any]]:
    """Each of the run: when, its name, whether it fires, and who said what is in it."""
    found = [(post.at, post.json()) for post in recorder.to("/hook")]
    return [{"at": at, "name": told["groupLabels"]["alertname"], "status": told["status"],
             "sources": {alert["labels"]["source"] for alert in told["alerts"]}}
            for at, told in found if told["groupLabels"].get("run") == "twins"]  # fmt: skip


def begun(journal: Path) -> float:
    """When the first NaN was written."""
    (path,) = (journal / "runs" / "twins").glob("training_metrics_*.jsonl")
    lines = map(json.loads, path.read_text().splitlines())
    return next(seconds(line["timestamp"]) or 0.0 for line in lines if math.isnan(line["loss"]))
