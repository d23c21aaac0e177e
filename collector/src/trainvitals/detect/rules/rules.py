"""All rules of a file, asked of what happens.

rules.training("gemma", 0, when, {"step": 7, "loss": 9.1})  ->  [Finding("Hot loss", …)]
rules.gpu(when, {"gpu": "3", "uuid": "GPU-…"}, {"temperature_celsius": 91.0})
rules.host(when, {"cpu_usage_percent": 99.0});  rules.forget("gemma")
"""

import math
from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any

from trainvitals.detect.finding import Finding, Place
from trainvitals.detect.rules.fields import SCOPES
from trainvitals.detect.rules.hints import Hints
from trainvitals.detect.rules.rule import Rule
from trainvitals.detect.rules.subject import Plan, Subject

MAX_RUNS, MAX_GPUS, MAX_RANKS = 256, 256, 16
# What a GPU or the host told longer ago is not beside what a run tells now.
FRESH_SECONDS = 60.0


class _Run:
    """The ranks of a run that are asked: for each rule the lowest that tells what it names."""

    def __init__(self) -> None:
        self.when = 0.0
        self.ranks: dict[int, Subject] = {}
        self.leaders: dict[tuple[object, ...], int] = {}
        # No rule looks at a rank above it.
        self.highest = math.inf

    def rank(self, rank: int) -> Subject | None:
        found = self.ranks.get(rank)
        if found is None and rank <= self.highest:
            if len(self.ranks) >= MAX_RANKS and rank > max(self.ranks):
                return None
            found = self.ranks[rank] = Subject()
        return found

    def leads(self, rule: Rule, rank: int, rules: int) -> bool:
        leader = self.leaders.get(rule.key)
        if leader is None or rank < leader:
            self.leaders[rule.key] = rank
            if len(self.leaders) == rules:
                self.highest = max(self.leaders.values())
                self.ranks = {each: subject for each, subject in self.ranks.items() if each <= self.highest}
            return True
        return rank == leader


class Rules:
    """`gpus`: the UUIDs of each run's GPUs, as far as somebody says so; a run of which nobody does may have any."""

    def __init__(self, rules: Iterable[Rule] = (), before: "Rules | None" = None) -> None:
        self.rules = tuple(rules)
        self.kinds = frozenset(rule.name for rule in self.rules)
        self.gpus: dict[str, set[str]] = before.gpus if before else {}
        self._of = {scope: [rule for rule in self.rules if rule.scope == scope] for scope in SCOPES}
        self._plans = {scope: Plan(scope, self.rules) for scope in SCOPES}
        self._hints = Hints(self._of["run"])
        self._runs: dict[str, _Run] = {}
        self._gpus: dict[str, Subject] = {}
        # By name, which the one of an agent has none of.
        self._hosts: dict[str, Subject] = {}
        if before:
            self._take_over(before)

    @property
    def hints(self) -> list[str]:
        """Names that no line ever told, with what may have been meant."""
        return self._hints.told

    def training(self, run: str, rank: int, when: float, record: Mapping[str, Any]) -> list[Finding]:
        if not (rules := self._of["run"]):
            return []
        known = self._runs.get(run) or self._new_run(run)
        if rank > known.highest or (subject := known.rank(rank)) is None:
            return []
        step = record.get("step")
        step = step if type(step) is int else None
        known.when = when
        subject.take(self._plans["run"], when, record, step)
        self._hints.look(run, record)
        place, told = Place(run, str(rank)), record.keys()  # a set of many is looked through, one of few is looked up
        return [finding for rule in rules if not (rule.told_by and told.isdisjoint(rule.told_by))
                and known.leads(rule, rank, len(rules))
                and (finding := self._asked(rule, subject, place, when, step))]  # fmt: skip

    def gpu(self, when: float, labels: Mapping[str, str] | Iterable[tuple[str, str]],
            values: Mapping[str, Any]) -> list[Finding]:  # fmt: skip
        """What `values` does not hold is as it was; None is what has become unknown."""
        plan = self._plans["gpu"]
        if not plan.names:
            return []
        if "memory_percent" in plan.names:
            values = with_percent(values)
        labels = dict(labels)
        gpu, uuid = labels.get("gpu", ""), labels.get("uuid", "")
        subject = self._gpus.get(uuid or gpu) or self._new_gpu(uuid or gpu)
        subject.texts.update(gpu=gpu, uuid=uuid)
        subject.take(plan, when, values)
        return self._of_node("gpu", subject, Place(gpu=gpu, uuid=uuid), when, values)

    def host(self, when: float, values: Mapping[str, Any], host: str = "") -> list[Finding]:
        if not self._plans["host"].names:
            return []
        subject = self._hosts.get(host) or self._hosts.setdefault(host, Subject())
        subject.take(self._plans["host"], when, values)
        return self._of_node("host", subject, Place(), when, values)

    def forget(self, run: str) -> None:
        self._runs.pop(run, None)
        self._hints.forget(run)
        self.gpus.pop(run, None)

    def forget_gpu(self, uuid: str) -> None:
        self._gpus.pop(uuid, None)

    def _of_node(self, scope: str, subject: Subject, place: Place, when: float,
                 values: Mapping[str, Any]) -> list[Finding]:  # fmt: skip
        told = values.keys()
        return [finding for rule in self._of[scope] if not (rule.told_by and told.isdisjoint(rule.told_by))
                and (finding := self._asked(rule, subject, place, when, None))]  # fmt: skip

    def _asked(self, rule: Rule, subject: Subject, place: Place, when: float, step: int | None) -> Finding | None:
        beside = self._beside(rule, subject, place.run, when) if rule.is_mixed else subject
        state = subject.state(rule)
        if not state.says(rule, rule.when.test(beside.values), when, step):
            return None
        return rule.finding(beside.values, {**beside.texts, **place.labels()}, place, step, state.stays)

    def _beside(self, rule: Rule, subject: Subject, run: str, when: float) -> Subject:
        """What the rule asks about with what it names besides: of hosts, and of a run's GPUs, the first for which it
        holds, else any."""
        hosts = [host for host in self._hosts.values() if when - host.when <= FRESH_SECONDS]
        gpus = self._gpus_of(run, when) if rule.scope == "run" else []
        for host, gpu in product(hosts or [_NOTHING], gpus or [_NOTHING]):
            both = Subject()
            both.values = {**host.values, **gpu.values, **subject.values}
            both.texts = {**gpu.texts, **subject.texts}
            if rule.when.test(both.values):
                break
        return both

    def _gpus_of(self, run: str, when: float) -> list[Subject]:
        uuids = self.gpus.get(run)
        return [subject for uuid, subject in self._gpus.items()
                if (not uuids or uuid in uuids) and when - subject.when <= FRESH_SECONDS]  # fmt: skip

    def _new_run(self, run: str) -> _Run:
        if len(self._runs) >= MAX_RUNS:
            self.forget(min(self._runs, key=lambda name: self._runs[name].when))
        return self._runs.setdefault(run, _Run())

    def _new_gpu(self, uuid: str) -> Subject:
        if len(self._gpus) >= MAX_GPUS:
            self.forget_gpu(min(self._gpus, key=lambda name: self._gpus[name].when))
        return self._gpus.setdefault(uuid, Subject())

    def _take_over(self, before: "Rules") -> None:
        """From the rules before: how the unchanged ones stand."""
        self._runs, self._gpus, self._hosts = before._runs, before._gpus, before._hosts
        keys = {rule.key for rule in self._of["run"]}
        for run in self._runs.values():
            run.leaders = {key: rank for key, rank in run.leaders.items() if key in keys}
            run.highest = math.inf
            for subject in run.ranks.values():
                subject.keep(self._plans["run"], self.rules)
        for subject in self._gpus.values():
            subject.keep(self._plans["gpu"], self.rules)
        for subject in self._hosts.values():
            subject.keep(self._plans["host"], self.rules)


_NOTHING = Subject()


def with_percent(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """A GPU's journal line has the share of its memory in use; its reading leaves that to be worked out."""
    used, total = values.get("memory_used_mb"), values.get("memory_total_mb")
    if "memory_percent" in values or not isinstance(used, (int, float)) or not total:
        return values
    return {**values, "memory_percent": 100 * used / total}
