"""Whether the cloud allows as many GPUs as are planned, asked first: a refusal half way costs minutes.

check(CLOUDS["gcp"], planned)  ->  NVIDIA_L4_GPUS in us-central1 allows 1, 1 are in use, 2 more are wanted: …

What cannot be asked, and what nobody counts, is said and stops nothing: the cloud itself refuses later.
"""

import json
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from deploy import say
from deploy.cloud import Cloud
from deploy.errors import DeployError

ASK_SECONDS = 60
Wanted = Counter[str]
Resource = Mapping[str, Any]
Changed = tuple[list[Resource], list[Resource]]


def check(cloud: Cloud, planned: Mapping[str, Any]) -> None:
    table = json.loads((cloud.folder / "prices.json").read_text(encoding="utf-8"))
    changes = [change["change"] for change in planned.get("resource_changes", []) if change["type"] == cloud.machine]
    try:
        short = list(SHORTAGES[cloud.name](_changed(changes), table, planned))
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError) as error:
        say.line(f"Quotas were not looked at: {_words(error)}")
        return
    if short:
        raise DeployError("\n".join(["the project's quotas are too small:", *short]))


def _changed(changes: list[Resource]) -> Changed:
    """Those that are made or become others, as they will be and as they were."""
    other = [each for each in changes if {"create", "update"}.intersection(each["actions"])]
    gone = [each for each in changes if {"delete", "update"}.intersection(each["actions"])]
    return [each["after"] for each in other], [each["before"] for each in gone]


def _gcp(changed: Changed, table: Mapping[str, Any], planned: Mapping[str, Any]) -> Iterator[str]:
    """What goes makes room: what is in use counts it still."""
    made, gone = changed
    if not made:
        return
    zone, project = made[0]["zone"], made[0].get("project") or variable(planned, "project")
    region = zone.rpartition("-")[0]
    here = _gcp_quotas("regions", "describe", region, project)
    wanted = _gcp_wanted(made, table, here)
    _say_uncounted(_gcp_uncounted(made, table))
    _say_uncounted(f"{metric}, which {region} does not tell" for metric in wanted if metric not in here)
    wanted.subtract(_gcp_wanted(gone, table, here))
    everywhere = _gcp_quotas("project-info", "describe", "", project)
    for metric, count in wanted.items():
        yield from _short(metric, region, count, here.get(metric))
    metric = table["quota_everywhere"]
    yield from _short(metric, "all regions", sum(wanted.values()), everywhere.get(metric))


def _gcp_wanted(machines: list[Resource], table: Mapping[str, Any], here: Mapping[str, Any]) -> Wanted:
    """Spot machines count against the ordinary quota where the project has none for them."""
    wanted: Wanted = Counter()
    for machine in machines:
        for gpu, count in _gcp_gpus(machine, table):
            if metrics := table["quota"].get(gpu):
                spot = is_spot(machine) and metrics["spot"] in here
                wanted[metrics["spot" if spot else "on_demand"]] += count
    return wanted


def _gcp_gpus(machine: Resource, table: Mapping[str, Any]) -> list[tuple[str, int]]:
    """Those that its type brings go first: of a machine that is there Google tells them under other names."""
    name = machine["machine_type"]
    kind = table["machine_types"].get(name, {})
    if kind.get("gpus"):
        return [(kind["quota"], kind["gpus"])]
    added = machine.get("guest_accelerator") or []
    is_newer = not kind and name.startswith(("a", "g"))
    return [(each["type"].rpartition("/")[2], each["count"]) for each in added] or [(name, 1)] * is_newer


def _gcp_uncounted(made: list[Resource], table: Mapping[str, Any]) -> Iterator[str]:
    """Those with GPUs of which the table knows no quota."""
    for machine in made:
        if any(gpu not in table["quota"] for gpu, _ in _gcp_gpus(machine, table)):
            yield f"{machine['machine_type']}, whose quota prices.json does not name"


def _say_uncounted(reasons: Iterable[str]) -> None:
    for reason in sorted(set(reasons)):
        say.line(f"Quotas: not looked at for {reason}")


def is_spot(machine: Resource) -> bool:
    by_google = any(each.get("provisioning_model") == "SPOT" for each in machine.get("scheduling") or [])
    return by_google or bool(machine.get("instance_market_options"))


def _gcp_quotas(what: str, verb: str, name: str, project: str | None) -> dict[str, tuple[float, float]]:
    words = ["gcloud", "compute", what, verb, *([name] if name else ()), *([f"--project={project}"] if project else ()),
             "--format=json(quotas)", "--quiet"]  # fmt: skip
    return {each["metric"]: (each["limit"], each["usage"]) for each in _asked(words)["quotas"]}


def _aws(changed: Changed, table: Mapping[str, Any], planned: Mapping[str, Any]) -> Iterator[str]:
    """Limits count virtual processors of a family of types; what is in use already is not told."""
    wanted: Wanted = Counter()
    types = {machine["instance_type"] for machine in changed[0]} - table["machine_types"].keys()
    _say_uncounted(f"the processors of {name}, which prices.json does not name" for name in types)
    for machine in changed[0]:
        kind = _aws_kind(machine["instance_type"], table)
        if family := table["quota"].get(kind.get("quota")):
            wanted[family["spot" if is_spot(machine) else "on_demand"]] += kind["vcpus"]
    zones = variable(planned, "zones")
    region = zones[0][:-1] if zones else ""
    for code, count in wanted.items():
        told = _asked(["aws", "service-quotas", "get-service-quota", "--service-code=ec2", f"--quota-code={code}",
                       "--output=json", *([f"--region={region}"] if region else ())])["Quota"]  # fmt: skip
        yield from _short(f"{told['QuotaName']} ({code})", region or "this region", count, (told["Value"], None))


def _aws_kind(name: str, table: Mapping[str, Any]) -> Mapping[str, Any]:
    """Of a type that is newer than the table its family by the letters it begins with, and one processor at least."""
    family = next((quota for begins, quota in table["quota_by_name"].items() if name.startswith(begins)), None)
    found: Mapping[str, Any] = table["machine_types"].get(name, {"quota": family, "vcpus": 1})
    return found


SHORTAGES: Mapping[str, Callable[[Changed, Mapping[str, Any], Mapping[str, Any]], Iterator[str]]]
SHORTAGES = {"gcp": _gcp, "aws": _aws}


def variable(planned: Mapping[str, Any], name: str) -> Any:
    """As the settings have it."""
    return planned.get("variables", {}).get(name, {}).get("value")


def _short(name: str, where: str, wanted: float, known: tuple[float, float | None] | None) -> Iterator[str]:
    """Nothing where it is enough. What is not told is unknown, not zero."""
    if wanted > 0 and known and known[0] - (known[1] or 0) < wanted:
        limit, used = known
        there = "what runs there counts too" if used is None else f"{used:g} are in use"
        yield (f"  {name} in {where} allows {limit:g}, {there}, {wanted:g} more are wanted: ask the cloud"
               " for a larger one (IAM & Admin, Quotas; Service Quotas), or take other machines or zones")  # fmt: skip


def _asked(words: list[str]) -> dict[str, Any]:
    done = subprocess.run(
        words, check=True, capture_output=True, text=True, timeout=ASK_SECONDS, stdin=subprocess.DEVNULL
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _words(error: Exception) -> str:
    """Of what a program said its first error, or its last line."""
    told = str(getattr(error, "stderr", None) or "").strip().splitlines()
    return next(
        (line for line in told if line.startswith("ERROR")), told[-1] if told else f"{type(error).__name__}: {error}"
    )
