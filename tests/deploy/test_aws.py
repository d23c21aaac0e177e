"""`make deploy CLOUD=aws` and `make destroy`, as typed, to a cloud on loopback whose machines nobody can log in to.

One story: Ctrl-C in the middle, then a zone that is full, then the same once more, then one machine more and a kill in
the middle, then settings of another region, then all of it goes.
"""

import signal
import time
from collections.abc import Iterator

import pytest

from tests.deploy import loopback
from tests.deploy.loopback import Clone, Gate, Told

TWO = loopback.SETTINGS.replace('"g6.xlarge" }', '"g6.xlarge", count = 2 }')

pytest.importorskip("boto3", reason="boto3 is not installed: make .venv/.dev")


@pytest.fixture(scope="module")
def gate() -> Iterator[Gate]:
    with loopback.serving() as gate:
        yield gate


@pytest.fixture(scope="module")
def clone(gate: Gate, tmp_path_factory: pytest.TempPathFactory) -> Clone:
    return loopback.clone(tmp_path_factory.mktemp("clone"), gate)


@pytest.fixture(scope="module")
def refused(clone: Clone) -> Told:
    return clone.make("deploy", answer="no")


@pytest.fixture(scope="module")
def broken_off(clone: Clone, refused: Told) -> Told:
    """When the network is there, and the machine is asked for."""
    clone.gate.go_on.clear()
    told = clone.make("deploy", interrupted=signal.SIGINT)
    clone.gate.go_on.set()
    return told


@pytest.fixture(scope="module")
def made(clone: Clone, broken_off: Told) -> Told:
    clone.gate.refused.clear()
    clone.gate.full.add("us-east-1a")
    return clone.make("deploy")


@pytest.fixture(scope="module")
def again(clone: Clone, made: Told) -> Told:
    return clone.make("deploy")


@pytest.fixture(scope="module")
def killed(clone: Clone, again: Told) -> Told:
    """As one more machine is asked for, by what nobody can catch."""
    (clone.terraform / "terraform.tfvars").write_text(TWO)
    clone.gate.refuses = False
    clone.gate.asked.clear()
    clone.gate.go_on.clear()
    return clone.make("deploy", interrupted=signal.SIGKILL)


@pytest.fixture(scope="module")
def meanwhile(clone: Clone, killed: Told) -> Told:
    told = _until_not(clone, "deploy", "another command is at work")
    clone.gate.go_on.set()
    return told


@pytest.fixture(scope="module")
def gone_on(clone: Clone, meanwhile: Told) -> Told:
    """Once the Terraform that was left alone has ended."""
    return _until_not(clone, "plan", "was ended hard")


@pytest.fixture(scope="module")
def elsewhere(clone: Clone, gone_on: Told) -> Told:
    """With zones of another region, in which Terraform would find nothing, and forget what it does not find."""
    (clone.terraform / "terraform.tfvars").write_text(TWO.replace("us-east-1", "us-west-2"))
    zone = clone.terraform / "zone.auto.tfvars.json"
    kept = zone.read_text()
    zone.unlink()
    told = clone.make("deploy")
    zone.write_text(kept)
    return told


@pytest.fixture(scope="module")
def destroyed(clone: Clone, elsewhere: Told) -> Told:
    """With those zones still, among which the one in use is not."""
    return clone.make("destroy")


def _until_not(clone: Clone, action: str, words: str) -> Told:
    end = time.monotonic() + loopback.SECONDS
    while words in (told := clone.make(action)).text:
        assert time.monotonic() < end, told.text
        time.sleep(1)
    return told


def test_the_plan_is_shown_with_its_price_before_anybody_is_asked(refused: Told) -> None:
    machine, counted, price, asked = (
        refused.text.index(words) for words in (
            '+ aws_instance.gpu["trainvitals-gpu-1"] g6.xlarge', "to create in us-east-1a",
            "Price: about $0.80 an hour while they run", "Make this? [yes/no]",
        )
    )  # fmt: skip
    assert machine < counted < price < asked


def test_who_says_no_makes_nothing(refused: Told) -> None:
    assert "deploy: nothing was done" in refused.text
    assert (refused.status, refused.machines, refused.networks) == (2, {}, [])


def test_ctrl_c_in_the_middle_keeps_what_there_is_and_says_how_to_go_on(broken_off: Told) -> None:
    assert broken_off.status != 0
    assert broken_off.machines == {} and len(broken_off.networks) == 1
    assert "aws_vpc" in broken_off.state and "aws_instance" not in broken_off.state
    assert "Ctrl-C: waiting until terraform has written down what it did" in broken_off.text
    assert "make deploy CLOUD=aws goes on, make destroy CLOUD=aws takes it down" in broken_off.text


def test_a_full_zone_is_left_for_the_next(clone: Clone, made: Told) -> None:
    assert "That zone has no such machine free now: going on to us-east-1b." in made.text
    assert set(clone.gate.refused) == {"us-east-1a"}
    assert list(made.machines.values()) == ["us-east-1b"]


def test_what_was_there_before_ctrl_c_is_gone_on_with(broken_off: Told, made: Told) -> None:
    assert made.networks == broken_off.networks


def test_machines_that_let_nobody_in_are_told_with_the_step_and_the_fix(made: Told) -> None:
    assert "deploy: 2/5 SSH" in made.text
    end = made.text[made.text.rindex("deploy: SSH: ") :]
    assert "trainvitals-gpu-1 did not let us in" in end
    assert "by hand: ssh -o " in end and f"trainvitals@{next(iter(made.machines))}" in end
    assert "REACH_SECONDS=1200" in end
    assert made.status == 2


def test_the_log_that_is_named_has_all_of_it(clone: Clone, made: Told) -> None:
    assert "All that is said will be in .cache/deploy/aws.log" in made.text
    assert clone.log.stat().st_mode & 0o077 == 0
    assert 'resource "aws_instance" "gpu"' in made.log and "InsufficientInstanceCapacity" in made.log
    assert "Failed to connect to the host via ssh" in made.log and "did not let us in" in made.log


def test_the_output_is_no_wall(made: Told) -> None:
    assert len(made.text.splitlines()) < 100, made.text


def test_a_second_run_makes_nothing_and_ends_at_the_same_step(made: Told, again: Told) -> None:
    assert "Nothing is to be changed." in again.text and "Make this?" not in again.text
    assert (again.status, again.machines, again.networks) == (2, made.machines, made.networks)
    assert "trainvitals-gpu-1 did not let us in" in again.text
    assert again.state == made.state and "aws_instance" in made.state


def test_a_terraform_that_is_left_alone_is_waited_for(again: Told, killed: Told, meanwhile: Told) -> None:
    assert killed.status == -signal.SIGKILL and killed.machines == again.machines
    assert "a command on aws was ended hard, what it had begun still works" in meanwhile.text
    assert meanwhile.status == 2 and meanwhile.machines == again.machines


def test_it_notes_the_machine_that_it_asked_for(gone_on: Told) -> None:
    assert [*gone_on.machines.values()] == ["us-east-1b"] * 2
    assert gone_on.status == 0 and "+ aws_instance.gpu" not in gone_on.text


def test_another_region_is_refused_while_machines_are_in_one(gone_on: Told, elsewhere: Told) -> None:
    assert ("zones: us-west-2a, us-west-2b, but what this deployment made is in us-east-1, and would run on unseen: "
            "put zones back, or make destroy CLOUD=aws first") in elsewhere.text  # fmt: skip
    assert (elsewhere.status, elsewhere.state, elsewhere.machines) == (2, gone_on.state, gone_on.machines)


def test_destroy_takes_everything_and_says_so(clone: Clone, destroyed: Told) -> None:
    assert 'aws_instance.gpu["trainvitals-gpu-1"]' in destroyed.text
    assert "h at $1.61 are about $0." in destroyed.text
    assert "Destroy all of it? [yes/no]" in destroyed.text
    assert (destroyed.status, destroyed.machines, destroyed.networks) == (0, {}, [])
    assert destroyed.text.rstrip().endswith("are gone.")
    assert destroyed.state == set() and not (clone.terraform / "zone.auto.tfvars.json").exists()
    assert not (clone.folder / "ansible" / "inventory" / "aws.yml").exists()


def test_a_machine_that_no_state_knows_is_told_by_destroy(clone: Clone, destroyed: Told) -> None:
    (clone.terraform / "terraform.tfvars").write_text(loopback.SETTINGS)
    ec2 = loopback.client(clone.gate.behind, "ec2")
    bears = [{"Key": "app", "Value": "trainvitals"}, {"Key": "deployment", "Value": "trainvitals"}]
    (stray,) = ec2.run_instances(ImageId="ami-dca37ea5", MinCount=1, MaxCount=1, TagSpecifications=[
        {"ResourceType": "instance", "Tags": bears}])["Instances"]  # fmt: skip
    ends = f"aws ec2 terminate-instances --region=us-east-1 --instance-ids {stray['InstanceId']}"
    told = clone.make("destroy")
    assert (told.status, list(told.machines)) == (2, [stray["InstanceId"]])
    assert ends in told.text
    ec2.terminate_instances(InstanceIds=[stray["InstanceId"]])
    assert clone.make("destroy").status == 0
