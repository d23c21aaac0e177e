"""What an inventory says that nobody would read: named with what was meant.

check(told, "hosts.yml")  ->  hosts.yml: gpu1: stack_expected_gpu is no variable of ours: stack_expected_gpus is
"""

import re
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml

from deploy.cloud import ROOT
from deploy.errors import DeployError

EXAMPLE = "ansible/inventory/example/hosts.yml"
GROUPS = ("gpu_nodes", "monitoring")
ALIKE, ALL_BUT = 0.75, 0.85
# What playbooks ask beside the roles.
ASKED = {"stack_remove_confirmed", "stack_restore_confirmed"}
_OURS = re.compile(r"(stack|base|docker|nvidia)_")
_SAID_OF_YAML = re.compile(r"ailed to parse .*\byaml'? plugin: (.+)")
_FILES = (".yml", ".yaml")


def need_yaml(path: Path) -> None:
    """Ansible would try it as all that it knows, and say of each why not."""
    if path.suffix not in _FILES or not path.is_file():
        return
    try:
        yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise DeployError(f"INVENTORY: {path.name} is no inventory: {_reason(error)}: see {EXAMPLE}") from error


def refusal(path: Path, said: str) -> DeployError:
    """Of YAML what Ansible says of it as YAML, else all that it says."""
    of_yaml = _SAID_OF_YAML.search(said) if path.suffix in _FILES else None
    return DeployError(f"INVENTORY: {path} is no inventory: {of_yaml[1] if of_yaml else said.strip()[-2000:]}")


def check(told: dict[str, Any], name: str) -> None:
    """`told` is what ansible-inventory --list says."""
    ours = {host for group in GROUPS for host in hosts(told, group)}
    if problems := [*_lost(told, ours), *_unknown(told, ours)]:
        raise DeployError("\n  ".join([f"{name}: what stands there is not what would be read:", *problems]))


def others(told: dict[str, Any]) -> Iterator[str]:
    """Machines that are left alone: they may be meant to be."""
    ours = {host for group in GROUPS for host in hosts(told, group)}
    for group in sorted(told.keys() - {"_meta", "all", "ungrouped", *GROUPS}):
        if left := sorted({*told[group].get("hosts", [])} - ours):
            where = "GPU machines stand in gpu_nodes, that of Prometheus in monitoring"
            yield f"{', '.join(left)} of the group {group}: left alone. {where}"


def hosts(told: dict[str, Any], group: str) -> Iterator[str]:
    """With those of the groups in it."""
    found = told.get(group, {})
    yield from found.get("hosts", [])
    for child in found.get("children", []):
        yield from hosts(told, child)


def known() -> set[str]:
    """The variables that the roles say they read."""
    specs = (yaml.safe_load(path.read_text()) for path in ROOT.glob("ansible/roles/*/meta/argument_specs.yml"))
    entries = [entry for spec in specs for entry in spec["argument_specs"].values()]
    return ASKED.union(*(entry["options"] for entry in entries))


def _lost(told: dict[str, Any], ours: set[str]) -> Iterator[str]:
    """Machines that are meant to be ours, as far as one can see. Others may be there."""
    for group in sorted(told.keys() - {"_meta", "all", "ungrouped", *GROUPS}):
        meant = get_close_matches(group.lower(), GROUPS, 1, ALIKE)
        if meant and set(hosts(told, group)) - ours:
            yield f"the group {group} is not read: {meant[0]} is"
    for host in sorted({*hosts(told, "ungrouped")} - ours - {"localhost"}):
        yield f"{host} is in no group: put it into gpu_nodes, or monitoring"


def _unknown(told: dict[str, Any], ours: set[str]) -> Iterator[str]:
    names, variables = known(), told["_meta"]["hostvars"]
    wrong: dict[str, list[str]] = {}
    for host in sorted(ours):
        for name in variables.get(host, {}):
            if _OURS.match(name) and name not in names:
                wrong.setdefault(name, []).append(host)
    for name, where in wrong.items():
        # Other roles have such names too, as docker_users; those are meant that are all but one of ours.
        if near := get_close_matches(name, names, 1, ALL_BUT):
            yield f"{', '.join(where)}: {name} is no variable of ours: {near[0]} is"


def _reason(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    if not mark:
        return str(error).partition("\n")[0]
    parts = (getattr(error, "context", None), getattr(error, "problem", None))
    return f"line {mark.line + 1}, column {mark.column + 1}: {', '.join(part for part in parts if part)}"
