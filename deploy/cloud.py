"""What differs between the clouds: where their modules are, which programs they want, how they say that a zone is full.

CLOUDS["gcp"].refusal("... ZONE_RESOURCE_POOL_EXHAUSTED ...")  ->  "ZONE_RESOURCE_POOL_EXHAUSTED"
"""

import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from deploy.editing import edited
from deploy.errors import DeployError, FileToEdit
from deploy.run import ask

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Cloud:
    name: str
    folder: Path
    # Terraform's type of a machine, and its attribute that says which machine it is.
    machine: str
    machine_type: str
    # Each with how one comes by it.
    programs: dict[str, str]
    # More of them, with access = "private".
    private_programs: dict[str, str]
    full: re.Pattern[str]
    # That a zone never has such machines.
    absent: re.Pattern[str]
    log_in: str
    # Tells who is logged in to the cloud's own command, where that is another login than Terraform's.
    account: tuple[str, ...] = ()

    @property
    def settings(self) -> Path:
        return self.folder / "terraform.tfvars"

    def refusal(self, told: str) -> str:
        """Why the zone has no such machine, empty where it is not that. Terraform breaks lines where it likes."""
        text = " ".join(told.split())
        found = self.absent.search(text) or self.full.search(text)
        return found[0] if found else ""

    def check(self, *, new: bool) -> None:
        """`new`: the one file to edit is written where it is missing."""
        need(self.programs)
        if (lost := self.folder / "errored.tfstate").exists():
            raise DeployError(
                f"{os.path.relpath(lost)}: what Terraform made could not be noted, the disk was full, say. Now: "
                f"terraform -chdir={os.path.relpath(self.folder)} state push {lost.name}, and remove that file"
            )
        if not self.settings.exists():
            self._without_settings(new)

    def need_account(self) -> None:
        """SSH and quotas go by it: without, machines would be made that nobody gets into."""
        if not self.account or os.environ.get("CLOUDSDK_AUTH_ACCESS_TOKEN"):
            return
        done = ask(self.account, folder=self.folder, seconds=ACCOUNT_SECONDS)
        if done.returncode or not done.stdout.strip():
            raise DeployError(f"{self.account[0]} is logged in as nobody, SSH goes by it: {' '.join(self.account[:2])} "
                              f"login; Terraform's own login is another: {self.log_in}")  # fmt: skip

    def _without_settings(self, new: bool) -> None:
        settings = os.path.relpath(self.settings)
        if not new:
            raise DeployError(f"{settings} is missing: nothing was made from this clone, or bring that file back")
        shutil.copy(self.folder / "terraform.tfvars.example", self.settings)
        if not edited(self.settings):
            raise FileToEdit(f"wrote {settings}, the one file to edit: say there what to make, then run this again")


def need(programs: Mapping[str, str]) -> None:
    for program, fix in programs.items():
        if not shutil.which(program):
            raise DeployError(f"{program} is not installed: {fix}")


ACCOUNT_SECONDS = 60
SSH = "apt-get install openssh-client"
TERRAFORM = "https://developer.hashicorp.com/terraform/install"
SESSIONS = (
    "https://docs.aws.amazon.com/systems-manager/latest/userguide/session-manager-working-with-install-plugin.html"
)
CLOUDS = {
    cloud.name: cloud
    for cloud in (
        Cloud(
            "gcp",
            ROOT / "terraform" / "gcp",
            "google_compute_instance",
            "machine_type",
            {"terraform": TERRAFORM, "ssh": SSH, "gcloud": "https://cloud.google.com/sdk/docs/install"},
            {},
            re.compile(
                r"ZONE_RESOURCE_POOL_EXHAUSTED|does not have enough resources available|STOCKOUT"
                r"|currently unavailable in the \S+ zone",
                re.IGNORECASE,
            ),
            re.compile(
                r"Machine type .{1,100} does not exist in zone( '[^']*')?|zones/\S+/machineTypes/\S+ was not found",
                re.IGNORECASE,
            ),
            "gcloud auth application-default login",
            ("gcloud", "auth", "list", "--filter=status:ACTIVE", "--format=value(account)"),
        ),
        Cloud(
            "aws",
            ROOT / "terraform" / "aws",
            "aws_instance",
            "instance_type",
            {
                "terraform": TERRAFORM,
                "ssh": SSH,
                "aws": "https://docs.aws.amazon.com/cli/latest/userguide/getting-started-install.html",
            },
            {"session-manager-plugin": SESSIONS},
            re.compile(r"InsufficientInstanceCapacity|InsufficientHostCapacity|capacity-not-available", re.IGNORECASE),
            re.compile(
                r"instance type \(\S+\) is not supported in your requested Availability Zone( \([^)]*\))?",
                re.IGNORECASE,
            ),
            "aws configure sso, or AWS_PROFILE",
        ),
    )
}
