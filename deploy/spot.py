"""Spot machines of AWS that stopped: Terraform cannot start them, since the cloud may have taken them back.

start_stopped(CLOUDS["aws"], terraform.show())  ->  ["i-0123"], which run now
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from deploy import quota, say
from deploy.cloud import Cloud
from deploy.run import ask

SECONDS, STOPPING_SECONDS = 60, 900
_STOPPED = "Name=instance-state-name,Values=stopping,stopped"


def start_stopped(cloud: Cloud, state: Mapping[str, Any]) -> list[str]:
    """What cannot be started is said, and SSH waits for it: the cloud starts by itself what it took back."""
    spot = {each["id"]: each["availability_zone"][:-1] for each in _machines(cloud, state) if quota.is_spot(each)}
    if cloud.name != "aws" or not spot:
        return []
    region = next(iter(spot.values()))
    told = _aws(cloud, region, "describe-instances", "--instance-ids", *spot, "--filters", _STOPPED,
                "--query=Reservations[].Instances[].InstanceId", "--output=json")  # fmt: skip
    stopped: list[str] = json.loads(told or "[]")
    return [machine for machine in stopped if _start(cloud, region, machine)]


def _start(cloud: Cloud, region: str, machine: str) -> bool:
    say.line(f"{machine}: a spot machine that was stopped, starting it")
    _aws(cloud, region, "wait", "instance-stopped", "--instance-ids", machine)
    if _aws(cloud, region, "start-instances", "--instance-ids", machine) is None:
        return False
    # Before that it may have no address.
    _aws(cloud, region, "wait", "instance-running", "--instance-ids", machine)
    return True


def _aws(cloud: Cloud, region: str, *words: str) -> str | None:
    """None when it failed, which was said."""
    done = ask(["aws", "ec2", *words, f"--region={region}"], folder=cloud.folder,
               seconds=STOPPING_SECONDS if words[0] == "wait" else SECONDS)  # fmt: skip
    if done.returncode:
        say.line(f"aws ec2 {words[0]}: {(done.stderr.strip().splitlines() or ['it failed'])[-1]}")
        return None
    return done.stdout


def _machines(cloud: Cloud, state: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for each in state.get("values", {}).get("root_module", {}).get("resources", []):
        if each["type"] == cloud.machine:
            yield each["values"]
