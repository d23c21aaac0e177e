"""The real Terraform over a module that makes nothing: planned, made, told and destroyed."""

import fcntl
from collections.abc import Callable

import pytest

from deploy.errors import DeployError
from deploy.machines import Machines
from deploy.terraform import Terraform
from tests.deploy.conftest import MODULE, Program, deployed
from tests.terraform import support


def test_zones_are_known_whatever_of_the_state_cannot_be_read_with_them(made: Callable[..., Terraform]) -> None:
    """As the subnet of a zone that is new."""
    terraform = made()
    with (terraform.cloud.folder / "main.tf").open("a") as main:
        main.write('resource "terraform_data" "subnet" {\n  for_each = toset(var.zones)\n}\n'
                   "locals {\n  subnet = terraform_data.subnet[local.zone].id\n}\n")  # fmt: skip
    deployed(terraform)
    (terraform.cloud.folder / "terraform.tfvars").write_text('zones = ["d", "a"]\n')
    assert deployed(terraform) == "d"


def test_an_answer_that_cannot_be_read_is_told_with_what_to_do(
    made: Callable[..., Terraform], program: Program
) -> None:
    terraform = made()
    program("terraform", "echo half")
    with pytest.raises(DeployError, match=r"terraform could not read zones of terraform.tfvars: .*make plan CLOUD=gcp"):
        terraform.setting("zones")


def test_a_machine_that_would_be_lost_is_agreed_to_by_its_name(
    made: Callable[..., Terraform], monkeypatch: pytest.MonkeyPatch
) -> None:
    terraform = made()
    deployed(terraform)
    (terraform.cloud.folder / "terraform.tfvars").write_text('zones = ["b", "a"]\n')
    monkeypatch.setenv("YES", "1")
    with pytest.raises(DeployError, match=r"go with their disks, .*: say YES=terraform_data.machine, or"):
        Machines(terraform.cloud).make()
    assert terraform.outputs()["zone"] == "a"
    monkeypatch.setenv("YES", "terraform_data.machine")
    Machines(terraform.cloud).make()
    assert terraform.outputs()["zone"] == "b"


def test_a_machine_that_a_first_run_left_half_made_is_no_loss(
    made: Callable[..., Terraform], monkeypatch: pytest.MonkeyPatch
) -> None:
    terraform = made()
    deployed(terraform)
    monkeypatch.setenv("YES", "1")
    support.run(terraform.cloud.folder, "taint", "terraform_data.machine")
    Machines(terraform.cloud).make()
    terraform.settled()
    support.run(terraform.cloud.folder, "taint", "terraform_data.machine")
    with pytest.raises(DeployError, match=r"say YES=terraform_data\.machine"):
        Machines(terraform.cloud).make()


def test_the_zones_are_read_below_what_terraform_warns_of(made: Callable[..., Terraform]) -> None:
    terraform = made()
    with (terraform.cloud.folder / "main.tf").open("a") as main:
        main.write("locals {\n  none  = one([])\n  wrong = { a = 1 }[local.none]\n}\n")
    terraform.init()
    assert "Warning" in terraform._quiet("console", seconds=60, given="1\n").stdout
    assert terraform.setting("zones") == ["a", "b", "c"]


def test_a_prometheus_that_would_move_is_told_and_agreed_to_by_the_name_of_where_it_was(
    made: Callable[..., Terraform], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terraform = made()
    main = terraform.cloud.folder / "main.tf"
    main.write_text(MODULE + 'output "monitoring" { value = "terraform_data.machine" }\n')
    deployed(terraform)
    main.write_text(main.read_text().replace('"terraform_data.machine"', '"another"'))
    monkeypatch.setenv("YES", "1")
    with pytest.raises(DeployError, match=r"or history be left behind: say YES=terraform_data.machine, or"):
        Machines(terraform.cloud).make()
    assert ("! Prometheus and Grafana move from terraform_data.machine to another: their history stays behind on "
            "terraform_data.machine\n") in capsys.readouterr().out  # fmt: skip
    monkeypatch.setenv("YES", "terraform_data.machine")
    Machines(terraform.cloud).make()
    assert terraform.outputs()["monitoring"] == "another"


def test_what_is_there_is_told_and_all_of_it_is_destroyed(made: Callable[..., Terraform]) -> None:
    terraform = made()
    deployed(terraform)
    assert terraform.everything() == ["terraform_data.machine", "terraform_data.network"]
    terraform.destroy()
    assert terraform.everything() == []


def test_an_apply_that_fails_half_way_says_what_takes_down_what_it_made(made: Callable[..., Terraform]) -> None:
    terraform = made()
    main = terraform.cloud.folder / "main.tf"
    main.write_text(
        main.read_text().replace("echo Error: ZONE_RESOURCE_POOL_EXHAUSTED", "false").replace("! grep", "grep")
    )
    with pytest.raises(DeployError, match=r"terraform apply .* costs money .*; make destroy CLOUD=gcp takes it down"):
        deployed(terraform)
    assert terraform.everything()


def test_a_module_that_is_wrong_is_told_with_its_folder(made: Callable[..., Terraform]) -> None:
    terraform = made()
    (terraform.cloud.folder / "terraform.tfvars").write_text("zones = 3\n")
    with pytest.raises(DeployError, match="terraform plan in terraform/gcp failed"):
        deployed(terraform)


def test_a_price_that_changes_reaches_the_inventory_though_no_machine_does(made: Callable[..., Terraform]) -> None:
    terraform = made()
    deployed(terraform)
    with (terraform.cloud.folder / "terraform.tfvars").open("a") as settings:
        settings.write("price = 7\n")
    Machines(terraform.cloud).make()
    assert "stack_node_price: 7" in terraform.outputs()["inventory"]


def test_a_machine_that_is_made_anew_loses_its_disk_and_that_is_said_first(
    made: Callable[..., Terraform], capsys: pytest.CaptureFixture[str]
) -> None:
    terraform = made()
    deployed(terraform)
    (terraform.cloud.folder / "zone.auto.tfvars.json").write_text('{"zone": "b"}')
    Machines(terraform.cloud).plan()
    told = capsys.readouterr().out
    assert "  -/+ terraform_data.machine: its disk goes, with all that is on it\n" in told
    assert "  1 to create, 1 to delete in b\n" in told
    assert not (terraform.cloud.folder / ".deploy" / "plan").exists()


def test_a_plan_does_not_say_to_apply_a_file_that_goes(
    made: Callable[..., Terraform], capsys: pytest.CaptureFixture[str]
) -> None:
    Machines(made().cloud).plan()
    told = capsys.readouterr().out
    assert "Plan: 2 to add" in told and "terraform apply" not in told and ".deploy/plan" not in told


def test_an_error_of_the_plan_is_told_without_the_plan_before_it(
    made: Callable[..., Terraform], capsys: pytest.CaptureFixture[str]
) -> None:
    terraform = made()
    with (terraform.cloud.folder / "main.tf").open("a") as main:
        main.write('resource "terraform_data" "wrong" {\n  input = file("nosuch-${terraform_data.network.id}")\n}\n'
                   'resource "terraform_data" "worse" {\n  input = file("nosuch")\n}\n')  # fmt: skip
    with pytest.raises(DeployError, match="terraform plan in terraform/gcp failed"):
        Machines(terraform.cloud).make()
    shown = capsys.readouterr().out.partition("and plans.\n")[2]
    assert shown.lstrip().startswith("Error: ") and "nosuch" in shown


def test_another_terraform_at_work_is_told_as_that(made: Callable[..., Terraform]) -> None:
    terraform = made()
    deployed(terraform)
    with (terraform.cloud.folder / "terraform.tfstate").open("r+") as state:
        fcntl.lockf(state, fcntl.LOCK_EX)
        with pytest.raises(DeployError, match="another Terraform is at work there: wait until it has ended"):
            terraform.plan()


def test_what_cannot_be_read_is_not_taken_for_nothing(made: Callable[..., Terraform]) -> None:
    terraform = made()
    deployed(terraform)
    (terraform.cloud.folder / "terraform.tfstate").write_text("{half")
    with pytest.raises(DeployError, match="cannot read what there is"):
        terraform.everything()


def test_without_machines_there_is_no_inventory(made: Callable[..., Terraform]) -> None:
    terraform = made()
    terraform.init()
    with pytest.raises(DeployError, match="no machines are there, or not all of them: make deploy CLOUD=gcp"):
        Machines(terraform.cloud).inventory()
