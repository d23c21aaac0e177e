"""Which zone a deployment is in: the first that has room, and where machines live no other, unless somebody says so."""

import json
import sys
from collections.abc import Callable

import pytest

from deploy.errors import DeployError
from deploy.machines import Machines
from deploy.terraform import Terraform
from tests.deploy.conftest import MODULE, deployed
from tests.deploy.test_say import Terminal


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


def test_a_machine_type_that_no_zone_has_is_told_as_that(
    made: Callable[..., Terraform], capsys: pytest.CaptureFixture[str]
) -> None:
    terraform = made(full="abc")
    main = terraform.cloud.folder / "main.tf"
    absent = "Machine type with name 'g2-standard-5' does not exist in zone"
    main.write_text(main.read_text().replace("ZONE_RESOURCE_POOL_EXHAUSTED", absent))
    with pytest.raises(DeployError, match=f"has that machine type .{absent}.*: take another, or name zones") as told:
        deployed(terraform)
    assert "free" not in str(told.value) and "later" not in str(told.value)
    assert "That zone never has such machines: going on to b." in capsys.readouterr().out


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
    assert json.loads((later.cloud.folder / "zone.auto.tfvars.json").read_text()) == {"zone": "a"}


def more(terraform: Terraform) -> Terraform:
    """One machine more, which that zone has no room for."""
    with (terraform.cloud.folder / "main.tf").open("a") as main:
        main.write(MODULE[MODULE.index('resource "terraform_data" "machine"') : MODULE.index('output "zone"')]
                   .replace('"machine"', '"second"'))  # fmt: skip
    return terraform


@pytest.mark.parametrize("beforehand", ["1", ""])
def test_what_a_deployment_made_that_is_not_through_is_not_left_for_another_zone_unasked(
    made: Callable[..., Terraform], monkeypatch: pytest.MonkeyPatch, beforehand: str
) -> None:
    deployed(made())
    later = more(made(full="a"))
    monkeypatch.setenv("YES", beforehand)
    monkeypatch.setattr(sys, "stdin", Terminal("yes\nno\n"))
    with pytest.raises(DeployError, match=r"to the next would destroy what is there: terraform_data\.machine\."):
        Machines(later.cloud).make()
    assert later.outputs()["zone"] == "a" and "terraform_data.machine" in later.machines()
    assert not (later.cloud.folder / "zone.auto.tfvars.json").exists()


def test_it_is_left_when_somebody_says_so(made: Callable[..., Terraform], monkeypatch: pytest.MonkeyPatch) -> None:
    deployed(made())
    later = more(made(full="a"))
    monkeypatch.delenv("YES", raising=False)
    monkeypatch.setattr(sys, "stdin", Terminal("yes\nyes\n"))
    Machines(later.cloud).make()
    assert later.outputs()["zone"] == "b"


def test_what_the_same_run_made_is_left_for_another_zone(
    made: Callable[..., Terraform], monkeypatch: pytest.MonkeyPatch
) -> None:
    both = more(made())
    main = both.cloud.folder / "main.tf"
    first, second, rest = main.read_text().partition('resource "terraform_data" "machine"')
    main.write_text(first + second + rest.replace("${path.module}/full", "/dev/null", 1))
    (both.cloud.folder / "full").write_text("a\n")
    monkeypatch.setenv("YES", "1")
    Machines(both.cloud).make()
    assert both.outputs()["zone"] == "b"


@pytest.mark.parametrize("kept", [True, False], ids=["kept", "from before it was"])
def test_another_zone_put_first_moves_nothing_that_lives(made: Callable[..., Terraform], kept: bool) -> None:
    terraform = made()
    deployed(terraform)
    terraform.settled()
    if not kept:
        (terraform.cloud.folder / "zone.auto.tfvars.json").unlink()
    (terraform.cloud.folder / "terraform.tfvars").write_text('zones = ["b", "a"]\n')
    terraform.init()
    assert {"no-op"} == {
        action for change in terraform.plan()["resource_changes"] for action in change["change"]["actions"]
    }
