"""Machines with public addresses in a cloud on loopback: made, stopped as `auto_stop` does, started by `make deploy`.

One story, in which nobody is let in by SSH: the inventory that is written before that tells where machines are reached.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
import yaml

from tests.deploy import loopback
from tests.deploy.loopback import Clone, Gate, Told

SETTINGS = """
zones          = ["us-east-1a"]
gpu_machines   = { a = { machine_type = "g6.xlarge", count = 2 } }
monitoring     = null
access         = "public"
ssh_cidrs      = ["203.0.113.7/32"]
ssh_public_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ9 ada@example"
"""
NAMES = ["trainvitals-a-1", "trainvitals-a-2"]
OWN = "stack_public_name: gpus.example.com\n"

pytest.importorskip("boto3", reason="boto3 is not installed: make .venv/.dev")


class Seen(NamedTuple):
    told: Told
    # By machine: the address in the inventory, and the cloud's own.
    listed: dict[str, str]
    public: dict[str, str | None]
    states: set[str]


@pytest.fixture(scope="module")
def gate() -> Iterator[Gate]:
    with loopback.serving() as gate:
        yield gate


@pytest.fixture(scope="module")
def clone(gate: Gate, tmp_path_factory: pytest.TempPathFactory) -> Clone:
    made = loopback.clone(tmp_path_factory.mktemp("clone"), gate, SETTINGS)
    # The addresses are somebody's.
    ssh = made.folder / "programs" / "ssh"
    ssh.write_text("#!/bin/sh\necho 'Connection timed out' >&2; exit 255\n")
    ssh.chmod(0o755)
    own = made.folder / "ansible" / "inventory" / "group_vars" / "aws.yml"
    own.parent.mkdir()
    own.write_text(OWN)
    return made


@pytest.fixture(scope="module")
def made(clone: Clone) -> Seen:
    return seen(clone, clone.make("deploy"))


@pytest.fixture(scope="module")
def again(clone: Clone, made: Seen) -> Seen:
    """After all of them were stopped, and lost their addresses."""
    ec2 = loopback.client(clone.gate.behind, "ec2")
    ec2.stop_instances(InstanceIds=[one["InstanceId"] for one in instances(clone).values()])
    assert {one.get("PublicIpAddress") for one in instances(clone).values()} == {None}
    return seen(clone, clone.make("deploy"))


@pytest.fixture(scope="module")
def destroyed(clone: Clone, again: Seen) -> Told:
    return clone.make("destroy")


def instances(clone: Clone) -> dict[str, dict[str, Any]]:
    told = loopback.client(clone.gate.behind, "ec2").describe_instances()["Reservations"]
    return {next(tag["Value"] for tag in one["Tags"] if tag["Key"] == "Name"): one
            for each in told for one in each["Instances"]}  # fmt: skip


def seen(clone: Clone, told: Told) -> Seen:
    inventory = yaml.safe_load((clone.folder / "ansible" / "inventory" / "aws.yml").read_text())
    hosts, there = inventory["gpu_nodes"]["hosts"], instances(clone)
    return Seen(told, {name: host["ansible_host"] for name, host in hosts.items()},
                {name: one.get("PublicIpAddress") for name, one in there.items()},
                {one["State"]["Name"] for one in there.values()})  # fmt: skip


def test_each_machine_has_an_address_that_the_inventory_tells(made: Seen) -> None:
    assert sorted(made.listed) == NAMES and made.listed == made.public
    assert all(made.listed.values()) and "SSH: trainvitals-a-1" in made.told.text


def test_ssh_is_open_to_the_addresses_given_alone(clone: Clone, made: Seen) -> None:
    ec2 = loopback.client(clone.gate.behind, "ec2")
    groups = {one["GroupId"]: one["GroupName"] for one in ec2.describe_security_groups()["SecurityGroups"]}
    rules = ec2.describe_security_group_rules()["SecurityGroupRules"]
    ours = [one for one in rules if groups[one["GroupId"]].startswith("trainvitals") and not one["IsEgress"]]
    assert [(one["FromPort"], one["CidrIpv4"]) for one in ours if one.get("CidrIpv4")] == [(22, "203.0.113.7/32")]


def test_there_is_no_gateway_for_machines_without_an_address(made: Seen) -> None:
    assert "aws_nat_gateway" not in made.told.state and "aws_iam_role" not in made.told.state


def test_machines_that_stopped_are_started_and_reached_at_their_new_addresses(made: Seen, again: Seen) -> None:
    assert again.states == {"running"}
    assert again.listed == again.public and set(again.listed.values()).isdisjoint({*made.listed.values(), "", None})


def test_what_the_user_says_beside_the_inventory_outlives_all_of_it(clone: Clone, destroyed: Told) -> None:
    inventory = clone.folder / "ansible" / "inventory"
    assert (destroyed.status, destroyed.machines, destroyed.networks) == (0, {}, [])
    assert (inventory / "group_vars" / "aws.yml").read_text() == OWN and not (inventory / "aws.yml").exists()
