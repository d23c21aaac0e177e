"""The real Terraform over a module that makes nothing: its machine is refused in the zones that a file names."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from deploy.cloud import CLOUDS
from deploy.errors import DeployError
from deploy.terraform import Terraform

MODULE = """
variable "zones" { type = list(string) }
variable "zone" { default = "" }
locals { zone = coalesce(var.zone, var.zones[0]) }
resource "terraform_data" "network" {}
resource "terraform_data" "machine" {
  triggers_replace = local.zone
  provisioner "local-exec" {
    command = "! grep -qx ${local.zone} ${path.module}/full || { echo Error: ZONE_RESOURCE_POOL_EXHAUSTED; exit 1; }"
  }
}
output "zone" { value = local.zone }
"""


@pytest.fixture
def made(tmp_path: Path) -> Callable[..., Terraform]:
    if not shutil.which("terraform"):
        pytest.skip("no terraform here")

    def make(*, full: str = "") -> Terraform:
        (tmp_path / "main.tf").write_text(MODULE)
        (tmp_path / "terraform.tfvars").write_text('zones = ["a", "b", "c"]\n')
        (tmp_path / "full").write_text("\n".join(full) + "\n")
        return Terraform(replace(CLOUDS["gcp"], folder=tmp_path, machine="terraform_data"))

    return make


def deployed(terraform: Terraform) -> str:
    terraform.init()
    terraform.plan()
    terraform.apply()
    return str(terraform.outputs()["zone"])


def test_the_first_zone_is_taken_where_it_has_room(made: Callable[..., Terraform]) -> None:
    assert deployed(made()) == "a"


def test_a_full_zone_is_left_for_the_next_and_the_choice_is_kept(made: Callable[..., Terraform]) -> None:
    terraform = made(full="ab")
    assert deployed(terraform) == "c"
    assert json.loads((terraform.cloud.folder / "zone.auto.tfvars.json").read_text()) == {"zone": "c"}
    terraform.settled()
    again = made()
    assert deployed(again) == "c"
    assert not again.plan().get("resource_changes") or {"no-op"} == {
        action for change in again.plan()["resource_changes"] for action in change["change"]["actions"]
    }


def test_where_every_zone_is_full_the_fix_is_told(made: Callable[..., Terraform]) -> None:
    with pytest.raises(DeployError, match="add zones, take another machine_type"):
        deployed(made(full="abc"))


def test_a_run_that_broke_between_two_zones_goes_on_there(made: Callable[..., Terraform]) -> None:
    with pytest.raises(DeployError):
        deployed(made(full="abc"))
    assert deployed(made(full="ac")) == "b"


def test_machines_that_live_are_never_moved_to_another_zone(made: Callable[..., Terraform]) -> None:
    terraform = made()
    deployed(terraform)
    terraform.settled()
    later = made(full="a")
    main = later.cloud.folder / "main.tf"
    main.write_text(
        main.read_text().replace("triggers_replace = local.zone", 'triggers_replace = "another machine_type"')
    )
    with pytest.raises(DeployError, match="machines that are there stay in it"):
        deployed(later)
    assert not (later.cloud.folder / "zone.auto.tfvars.json").exists()


def test_what_is_there_is_told_and_all_of_it_is_destroyed(made: Callable[..., Terraform]) -> None:
    terraform = made()
    deployed(terraform)
    assert terraform.everything() == ["terraform_data.machine", "terraform_data.network"]
    terraform.destroy()
    assert terraform.everything() == []


def test_a_module_that_is_wrong_is_told_with_its_folder(made: Callable[..., Terraform]) -> None:
    terraform = made()
    (terraform.cloud.folder / "terraform.tfvars").write_text("zones = 3\n")
    with pytest.raises(DeployError, match="terraform plan in terraform/gcp failed"):
        deployed(terraform)
