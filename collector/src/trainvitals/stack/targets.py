"""What Prometheus is to scrape here: the targets files as they lie in prometheus/targets, for the services that run.

write(Path("/shipped"), Path("/targets"), ("node", "server"), "gpu1")
    /targets/trainvitals.yml      - targets: ["collector:8080"]
                                    labels: {instance: gpu1}
    /targets/expected.rules.yml   target:expected:info{job="trainvitals", instance="gpu1"} 1

A service of the stack is a target while its profile is chosen, under this machine's name; any other is left as it is.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from trainvitals.errors import TrainVitalsError

Entry = dict[str, Any]

# Within the demo's container the second listens one port higher.
DEMO_NODES = 2
RULES = "expected.rules.yml"
PROFILES_OF = {
    "collector": {"node", "server"},
    "node-exporter": {"node"},
    "dcgm-exporter": {"dcgm", "dcgm-profiling"},
    "nvidia-smi-exporter": {"nvidia-smi"},
}
# One target a job and host, where a file does not name it: the exporter runs once its profile is chosen.
OWN = {
    "trainvitals": "collector:8080",
    "node": "node-exporter:9100",
    "dcgm": "dcgm-exporter:9400",
    "nvidia-smi": "nvidia-smi-exporter:9835",
}


def write(shipped: Path, out: Path, profiles: tuple[str, ...], host: str) -> None:
    jobs = {job: list(entries(job, _read_all(shipped, job), profiles, host)) for job in OWN}
    for job, found in jobs.items():
        _replace(out / f"{job}.yml", found)
    _replace(out / RULES, expected(jobs))


def entries(job: str, shipped: list[Entry], profiles: tuple[str, ...], host: str) -> Iterator[Entry]:
    """This machine's own first, then those of others, then the demo's."""
    if PROFILES_OF[_service(OWN[job])] & set(profiles):
        yield _entry(OWN[job], host)
    for entry in shipped:
        others = [target for target in entry["targets"] if _service(target) not in PROFILES_OF]
        if others:
            yield {**entry, "targets": others}
    if job == "trainvitals" and "demo" in profiles:
        for node in range(DEMO_NODES):
            yield _entry(f"demo:{8080 + node}", f"demo-{node + 1}")


def expected(jobs: dict[str, list[Entry]]) -> dict[str, Any]:
    """A series for each target, which stays when service discovery has forgotten it."""
    rules = [
        {"record": "target:expected:info", "expr": "vector(1)", "labels": {"job": job, "instance": instance}}
        for job, found in jobs.items()
        for instance in dict.fromkeys(_instance(entry, target) for entry in found for target in entry["targets"])
    ]
    return {"groups": [{"name": "expected", "rules": rules}]}


def _instance(entry: Entry, target: str) -> str:
    """As prometheus.yml relabels it: a name without its domain, an address of numbers whole."""
    name = str((entry.get("labels") or {}).get("instance") or _service(target))
    first = name.partition(".")[0]
    return name if first.isdigit() else first


def _entry(target: str, instance: str) -> Entry:
    return {"targets": [target], "labels": {"instance": instance}}


def _service(target: str) -> str:
    return target.rpartition(":")[0] or target


def _read_all(folder: Path, job: str) -> list[Entry]:
    return [entry for path in sorted(folder.glob(f"{job}*.yml")) for entry in _read(path)]


def _read(path: Path) -> list[Entry]:
    found = yaml.safe_load(path.read_text(encoding="utf-8")) or []
    if not isinstance(found, list) or not all(_is_entry(entry) for entry in found):
        raise TrainVitalsError(f"{path}: write a list of {{targets: [host:port], labels: {{instance: host}}}}")
    return found


def _is_entry(entry: object) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("targets"), list) and bool(entry["targets"])


def _replace(path: Path, content: Any) -> None:
    """Prometheus watches the folder and is never to meet half a file."""
    unfinished = path.with_name(f"{path.name}.unfinished")
    unfinished.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    unfinished.replace(path)
