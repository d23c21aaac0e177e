"""What differs between the clouds: where their modules are, which programs they want, how they say that a zone is full.

CLOUDS["gcp"].is_full("... ZONE_RESOURCE_POOL_EXHAUSTED ...")  ->  True
"""

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from deploy.errors import DeployError

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Cloud:
    name: str
    folder: Path
    # Terraform's type of a machine.
    machine: str
    # Each with how one comes by it.
    programs: dict[str, str]
    full: re.Pattern[str]
    log_in: str

    @property
    def settings(self) -> Path:
        return self.folder / "terraform.tfvars"

    def is_full(self, told: str) -> bool:
        return bool(self.full.search(told))

    def check(self) -> None:
        for program, fix in self.programs.items():
            if not shutil.which(program):
                raise DeployError(f"{program} is not installed: {fix}")
        if not self.settings.exists():
            example = self.folder / "terraform.tfvars.example"
            shutil.copy(example, self.settings)
            raise DeployError(f"wrote {os.path.relpath(self.settings)}: say there what to make, then run this again")


TERRAFORM = "https://developer.hashicorp.com/terraform/install"
CLOUDS = {
    cloud.name: cloud
    for cloud in (
        Cloud(
            "gcp",
            ROOT / "terraform" / "gcp",
            "google_compute_instance",
            {"terraform": TERRAFORM, "gcloud": "https://cloud.google.com/sdk/docs/install"},
            re.compile(
                r"ZONE_RESOURCE_POOL_EXHAUSTED|does not have enough resources available|STOCKOUT"
                r"|currently unavailable in the \S+ zone",
                re.IGNORECASE,
            ),
            "gcloud auth application-default login",
        ),
        Cloud(
            "aws",
            ROOT / "terraform" / "aws",
            "aws_instance",
            {
                "terraform": TERRAFORM,
                "aws": "https://docs.aws.amazon.com/cli/latest/userguide/getting-started-install.html",
            },
            re.compile(
                r"InsufficientInstanceCapacity|InsufficientHostCapacity|capacity-not-available"
                r"|is not supported in your requested Availability Zone",
                re.IGNORECASE,
            ),
            "aws configure sso, or AWS_PROFILE",
        ),
    )
}
