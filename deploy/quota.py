"""Whether the cloud allows as many GPUs as are planned, asked first: a refusal half way costs minutes.

check(CLOUDS["gcp"], planned)  ->  NVIDIA_L4_GPUS in us-central1 allows 1, 1 are in use, 2 more are wanted: …

What cannot be asked is said and stops nothing: the cloud itself refuses later.
"""

import json
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from deploy import say
from deploy.cloud import Cloud
from deploy.errors import DeployError

ASK_SECONDS = 60
Wanted = Counter[str]
Resource = Mapping[str, Any]


def check(cloud: Cloud, planned: Mapping[str, Any]) -> None:
    table = json.loads((cloud.folder / "prices.json").read_text(encoding="utf-8"))
    made = [change["change"]["after"] for change in planned.get("resource_changes", [])
            if change["type"] == cloud.machine and "create" in change["change"]["actions"]]  # fmt: skip
    try:
        short = list(SHORTAGES[cloud.name](made, table))
    except (OSError, subprocess.SubprocessError, ValueError, KeyError) as error:
        say.line(f"Quotas were not looked at: {_words(error)}")
        return
    if short:
        raise DeployError("\n".join(["the project's quotas are too small:", *short]))


def _gcp(made: list[Resource], table: Mapping[str, Any]) -> Iterator[str]:
    if not made:
        return
    zone, project = made[0]["zone"], made[0].get("project")
    region = zone.rpartition("-")[0]
    here = _gcp_quotas("regions", "describe", region, project)
    wanted = _gcp_wanted(made, table, here)
    everywhere = _gcp_quotas("project-info", "describe", "", project)
    for metric, count in wanted.items():
        yield from _short(metric, region, count, here.get(metric))
    metric = table["quota_everywhere"]
    yield from _short(metric, "all regions", sum(wanted.values()), everywhere.get(metric))


def _gcp_wanted(made: list[Resource], table: Mapping[str, Any], here: Mapping[str, Any]) -> Wanted:
    """Spot machines count against the ordinary quota where the project has none for them."""
    wanted: Wanted = Counter()
    for machine in made:
        kind = table["machine_types"].get(machine["machine_type"], {})
        added = machine.get("guest_accelerator") or []
        gpus = [(each["type"], each["count"]) for each in added] or [(kind.get("quota"), kind.get("gpus", 0))]
        for gpu, count in gpus:
            if metrics := table["quota"].get(gpu):
                is_spot = _is_spot(machine) and metrics["spot"] in here
                wanted[metrics["spot" if is_spot else "on_demand"]] += count
    return wanted


def _is_spot(machine: Resource) -> bool:
    return any(each.get("provisioning_model") == "SPOT" for each in machine.get("scheduling") or [])


def _gcp_quotas(what: str, verb: str, name: str, project: str | None) -> dict[str, tuple[float, float]]:
    words = ["gcloud", "compute", what, verb, *([name] if name else ()), *([f"--project={project}"] if project else ()),
             "--format=json(quotas)", "--quiet"]  # fmt: skip
    return {each["metric"]: (each["limit"], each["usage"]) for each in _asked(words)["quotas"]}


def _aws(made: list[Resource], table: Mapping[str, Any]) -> Iterator[str]:
    """Limits count virtual processors of a family of types; what is in use already is not told."""
    wanted: Wanted = Counter()
    for machine in made:
        kind = table["machine_types"].get(machine["instance_type"], {})
        family = table["quota"].get(kind.get("quota"))
        if family:
            spot = bool(machine.get("instance_market_options"))
            wanted[family["spot" if spot else "on_demand"]] += kind["vcpus"]
    for code, count in wanted.items():
        told = _asked(["aws", "service-quotas", "get-service-quota", "--service-code=ec2", f"--quota-code={code}",
                       "--output=json"])["Quota"]  # fmt: skip
        yield from _short(f"{told['QuotaName']} ({code})", "this region", count, (told["Value"], 0.0))


SHORTAGES: Mapping[str, Callable[[list[Resource], Mapping[str, Any]], Iterator[str]]] = {"gcp": _gcp, "aws": _aws}


def _short(name: str, where: str, wanted: float, known: tuple[float, float] | None) -> Iterator[str]:
    """Nothing where it is enough. What is not told is unknown, not zero."""
    if known and known[0] - known[1] < wanted:
        limit, used = known
        yield (f"  {name} in {where} allows {limit:g}, {used:g} are in use, {wanted:g} more are wanted: ask the cloud"
               " for a larger one (IAM & Admin, Quotas; Service Quotas), or take other machines or zones")  # fmt: skip


def _asked(words: list[str]) -> dict[str, Any]:
    done = subprocess.run(
        words, check=True, capture_output=True, text=True, timeout=ASK_SECONDS, stdin=subprocess.DEVNULL
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _words(error: Exception) -> str:
    told = getattr(error, "stderr", None)
    return (str(told).strip().splitlines() or [str(error)])[-1] if told else f"{type(error).__name__}: {error}"
