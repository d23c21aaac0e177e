"""What terraform.tfvars says, looked at before anything is planned: in a second, and with the last word.

check(CLOUDS["gcp"])  ->  terraform.tfvars: auto_stop.stopat is not known: did you mean stop_at?

Terraform only warns of a name that it does not know, and says nothing of such a key within one. So the file is read
twice by Terraform itself: as it stands, and as the variables take it. What is missing there, nobody would have read.
"""

import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

from deploy import place
from deploy.cloud import Cloud, need
from deploy.errors import DeployError
from deploy.run import ask

SECONDS = 60
_DECLARED = re.compile(r'^variable "(\w+)"', re.MULTILINE)
_UNFIT = re.compile(
    r"^The given value is not suitable\s+for\s+var\.(\w+)\s+declared\s+at\s+\S+:\s+(.*?)\n\n", re.MULTILINE | re.DOTALL
)
# How what has parts is written.
_FORMS = {
    "prices": '{{ "{type}" = {{ on_demand = 0.71, spot = 0.28 }} }}, dollars an hour',
    "gpu_machines": '{{ gpu = {{ machine_type = "{type}", count = 1 }} }}',
    "monitoring": "{{ disk_gb = 50 }}",
    "auto_stop": '{{ stop_at = "20:00", idle_minutes = 60 }}',
    "labels": '{{ team = "ml" }}',
    "zones": '["{zone}"]',
    "ssh_cidrs": '["203.0.113.7/32"]',
    "https_cidrs": '["203.0.113.0/24"]',
}
_REFUSED = re.compile(r"^Error: Invalid value for variable$.*?^(\w+: .*?)\n\n", re.MULTILINE | re.DOTALL)


class Settings(NamedTuple):
    said: dict[str, Any]
    read: dict[str, Any]
    refused: list[str]
    # What is of another form than the variable: its name, and why.
    unfit: list[tuple[str, str]]


def check(cloud: Cloud) -> dict[str, Any]:
    """What it says, and where it is silent the defaults; empty where it is none that Terraform can read."""
    told = _read(cloud.folder)
    if wrong := [*_unread(told.said, told.read, ""), *_refused(told, cloud)]:
        raise DeployError("\n".join(["terraform.tfvars:", *(f"  {each}" for each in wrong)]))
    if told.read.get("access") == "private":
        need(cloud.private_programs)
    return told.read


def _read(folder: Path) -> Settings:
    """Empty where the file is none that Terraform can read: its plan says so, with the line."""
    with tempfile.TemporaryDirectory() as name:
        variables = [*folder.glob("variables*.tf")]
        for source in (*variables, "prices.json", "terraform.tfvars", *folder.glob("*.auto.tfvars*")):
            shutil.copy(folder / source, name)
        said = (folder / "terraform.tfvars").read_text(encoding="utf-8")
        names = [one for file in variables for one in _DECLARED.findall(file.read_text(encoding="utf-8"))]
        Path(name, "said.tf").write_text(f"locals {{\nsaid = {{\n{said}\n}}\n}}\n", encoding="utf-8")
        read = ", ".join(f"{each} = var.{each}" for each in names)
        done = ask(["terraform", "console", "-no-color"], folder=Path(name), seconds=SECONDS,
                   environ={**os.environ, "TF_INPUT": "0"},
                   given=f"jsonencode([local.said, {{{read}}}])\n")  # fmt: skip
    try:
        values = json.loads(json.loads(done.stdout.strip().rpartition("\n")[2]))
    except ValueError:
        values = {}, {}
    refused = [" ".join(each.split()) for each in _REFUSED.findall(f"{done.stderr}\n\n")]
    unfit = [(name, " ".join(why.split())) for name, why in _UNFIT.findall(f"{done.stderr}\n\n")]
    return Settings(*values, refused, unfit)


def _refused(told: Settings, cloud: Cloud) -> Iterator[str]:
    """A key's file may be told from the folder itself, where this was not read: that is the plan's to judge."""
    elsewhere = os.path.isfile(cloud.folder / str(told.read.get("ssh_public_key", "")))
    table = json.loads((cloud.folder / "prices.json").read_text(encoding="utf-8"))
    known, zone = table["machine_types"], place.first_zone(cloud, table["region"])
    for each in told.refused:
        if not (elsewhere and each.startswith("ssh_public_key:")):
            yield each + _near(each, known)
    for name, why in told.unfit:
        form = f" Write {name} = {_FORMS[name].format(type=next(iter(known)), zone=zone)}" if name in _FORMS else ""
        yield f"{name}: {why}{form}"


def _near(refused: str, known: Mapping[str, Any]) -> str:
    """Of the machine types that are no such."""
    named = re.findall(r" has '([^']*)'", refused) if refused.startswith("gpu_machines:") else []
    near = {each: None for name in named for each in get_close_matches(name, known, n=3)}
    return f" Did you mean {' or '.join(near)}?" if near else ""


def _unread(said: Any, read: Any, path: str) -> Iterator[str]:
    if not isinstance(said, Mapping) or not isinstance(read, Mapping):
        return
    for key, value in said.items():
        if key in read:
            yield from _unread(value, read[key], f"{path}{key}.")
        else:
            near = get_close_matches(key, read, n=1)
            fix = f"did you mean {near[0]}?" if near else f"there are {', '.join(read)}"
            yield f"{path}{key} is not known: {fix}"
