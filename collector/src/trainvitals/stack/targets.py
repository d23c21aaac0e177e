"""What Prometheus is to scrape here: the targets files as they lie in prometheus/targets, for the services that run.

write(Path("/shipped"), Path("/targets"), ("node", "server"), "gpu1")
    /targets/trainvitals.yml      - targets: ["collector:8080"]
                                    labels: {instance: gpu1}
    /targets/expected.rules.yml   target:expected:info{job="trainvitals", instance="gpu1"} 1

A service of the stack is a target while its profile is chosen, under this machine's name; any other is left as it is.
One that has a web configuration is labelled for the jobs of prometheus/web, as others' targets are by hand.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from trainvitals.errors import TrainVitalsError

# As relabel_configs in prometheus.yml have them.
_NAME = re.compile(r"(\d+\.\d+\.\d+\.\d+|[^.:\[\]]+)(?:\.[^:]*)?(?::\d+)?", re.ASCII)
_IN_BRACKETS = re.compile(r"\[(.+)\](?::\d+)?", re.ASCII)
Entry = dict[str, Any]
SHAPE = "write a list of {targets: [host:port], labels: {instance: host}}"

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
# The knob that gives a job's own service a web configuration; nvidia_gpu_exporter has none.
_WEB = {
    "trainvitals": "TRAINVITALS_WEB_CONFIG",
    "node": "EXPORTERS_WEB_CONFIG",
    "dcgm": "EXPORTERS_WEB_CONFIG",
}


def write(shipped: Path, out: Path, profiles: tuple[str, ...], host: str, environ: Mapping[str, str]) -> None:
    locked = {job for job, knob in _WEB.items() if environ.get(knob)}
    jobs = {job: list(entries(job, _read_all(shipped, job), profiles, host, job in locked)) for job in OWN}
    for job, found in jobs.items():
        _replace(out / f"{job}.yml", found)
    _replace(out / RULES, expected(jobs))


def entries(
    job: str, shipped: list[Entry], profiles: tuple[str, ...], host: str, is_locked: bool = False
) -> Iterator[Entry]:
    """This machine's own first, then those of others, then the demo's."""
    if PROFILES_OF[_service(OWN[job])] & set(profiles):
        yield _entry(OWN[job], host, **({"__web_config__": "yes"} if is_locked else {}))
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
    """As prometheus.yml relabels it: a name without domain and port, an address of numbers whole."""
    name = str((entry.get("labels") or {}).get("instance") or target)
    found = _NAME.fullmatch(name) or _IN_BRACKETS.fullmatch(name)
    return found[1] if found else name


def _entry(target: str, instance: str, **more: str) -> Entry:
    return {"targets": [target], "labels": {"instance": instance, **more}}


def _service(target: str) -> str:
    return target.rpartition(":")[0] or target


def _read_all(folder: Path, job: str) -> list[Entry]:
    return [entry for path in sorted(folder.glob(f"{job}*.yml")) for entry in _read(path)]


def _read(path: Path) -> list[Entry]:
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8")) or []
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise TrainVitalsError(f"{path}: {SHAPE} (it is no YAML: {' '.join(str(error).split())})") from error
    if not isinstance(found, list) or not all(_is_entry(entry) for entry in found):
        raise TrainVitalsError(f"{path}: {SHAPE}")
    return found


def _is_entry(entry: object) -> bool:
    if not isinstance(entry, dict) or not entry.keys() <= {"targets", "labels"}:
        return False
    targets, labels = entry.get("targets"), entry.get("labels") or {}
    return _is_list_of_addresses(targets) and isinstance(labels, dict) and all(map(_is_label, labels.items()))


def _is_list_of_addresses(targets: object) -> bool:
    """As Prometheus takes them: a path is none of an address."""
    return isinstance(targets, list) and bool(targets) and all(
        isinstance(target, str) and re.fullmatch(r"[^\s/]+", target) for target in targets
    )  # fmt: skip


def _is_label(label: tuple[object, object]) -> bool:
    return isinstance(label[0], str) and isinstance(label[1], (str, int, float))


def _replace(path: Path, content: Any) -> None:
    """Prometheus watches the folder and is never to meet half a file."""
    unfinished = path.with_name(f"{path.name}.unfinished")
    unfinished.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    unfinished.replace(path)
