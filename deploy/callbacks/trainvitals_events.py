"""Ansible's part of deploy/progress.py: each step, and what became of it on each host, as a line of JSON."""

import json
import sys
from typing import Any

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: trainvitals_events
type: aggregate
short_description: Tells make deploy what happens
description: A line of JSON an event, between the lines of the ordinary output. What no_log hides stays hidden.
"""
# A control character that begins no line of Ansible's own.
MARK = "\x1e"
LONGEST = 1500


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "trainvitals_events"
    CALLBACK_NEEDS_ENABLED = True

    def v2_playbook_on_play_start(self, play: Any) -> None:
        _tell("play", name=play.get_name())

    def v2_playbook_on_task_start(self, task: Any, is_conditional: bool) -> None:
        _tell("step", name=task.get_name())

    def v2_playbook_on_handler_task_start(self, task: Any) -> None:
        _tell("step", name=task.get_name())

    def v2_runner_on_start(self, host: Any, task: Any) -> None:
        _tell("start", host=host.get_name())

    def v2_runner_on_ok(self, result: Any) -> None:
        _tell("done", host=result._host.get_name(), how="changed" if result.is_changed() else "ok")

    def v2_runner_on_skipped(self, result: Any) -> None:
        _tell("done", host=result._host.get_name(), how="ok")

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        how = "ok" if ignore_errors else "failed"
        _tell("done", host=result._host.get_name(), how=how, why=_reason(result._result))

    def v2_runner_on_unreachable(self, result: Any) -> None:
        _tell("done", host=result._host.get_name(), how="unreachable", why=_reason(result._result))

    def v2_playbook_on_stats(self, stats: Any) -> None:
        for host in sorted(stats.processed):
            told = stats.summarize(host)
            _tell("end", host=host, changed=told["changed"], failed=told["failures"] + told["unreachable"])


def _tell(event: str, **told: Any) -> None:
    # In one go: Ansible writes from several threads.
    sys.stdout.write(f"{MARK}{json.dumps({'event': event, **told})}\n")
    sys.stdout.flush()


def _reason(result: Any) -> str:
    """The message, or those of the items that failed; of a program what it said last, when nothing else says why."""
    if "censored" in result:
        return "its words are hidden, since they may hold a secret"
    failed = [item for item in result.get("results", ()) if item.get("failed") or item.get("unreachable")]
    if failed:
        return "; ".join(dict.fromkeys(map(_reason, failed)))[:LONGEST]
    words = [str(result.get("msg", "")), *_last_words(result)]
    return "\n".join(word.strip() for word in words if word.strip())[-LONGEST:]


def _last_words(result: Any) -> list[str]:
    """Modules that run a program keep what it said; the others have it all in their message."""
    if "rc" not in result:
        return []
    said = str(result.get("stderr") or result.get("stdout") or result.get("module_stderr") or "")
    return said.strip().splitlines()[-5:]
