"""What the commands say before anything is done: which cloud, what is missing, how one goes on."""

import subprocess
import sys
from pathlib import Path

import pytest

from deploy.cloud import CLOUDS, ROOT, Cloud
from deploy.errors import DeployError
from tests.deploy.conftest import Program


def told(*words: str) -> str:
    done = subprocess.run([sys.executable, "-m", "deploy", *words], cwd=ROOT, check=False, capture_output=True,
                          text=True, timeout=120, stdin=subprocess.DEVNULL)  # fmt: skip
    assert done.returncode == 2, done
    return done.stderr


@pytest.mark.parametrize(("words", "wanted"), [
    (["deploy"], "say which: make deploy CLOUD=gcp, CLOUD=aws or INVENTORY=hosts.yml"),
    (["verify", "--cloud", "gcp", "--inventory", "hosts.yml"], "say which: make verify"),
    (["plan", "--cloud", "azure"], "CLOUD: 'azure' is none that there is a module for: take gcp or aws"),
    (["deploy", "--inventory", "nosuch.yml"], "INVENTORY: there is no file nosuch.yml"),
    (["destroy", "--inventory", "hosts.yml"], "ansible-playbook ansible/remove.yml takes the stack off them"),
])  # fmt: skip
def test_a_call_that_is_off_is_told_with_the_fix(words: list[str], wanted: str) -> None:
    assert wanted in told(*words)


def some_cloud(folder: Path) -> Cloud:
    return Cloud("gcp", folder, "x", {"needed": "https://example.com/install"}, CLOUDS["gcp"].full, "log in")


def test_a_program_that_is_missing_is_told_with_where_it_is(tmp_path: Path) -> None:
    with pytest.raises(DeployError, match=r"needed is not installed: https://example.com/install"):
        some_cloud(tmp_path).check()


def test_the_one_file_to_edit_is_written_and_named(tmp_path: Path, program: Program) -> None:
    program("needed", "true")
    (tmp_path / "terraform.tfvars.example").write_text('name = "x"\n')
    with pytest.raises(DeployError, match=r"wrote .*terraform.tfvars: say there what to make, then run this again"):
        some_cloud(tmp_path).check()
    assert (tmp_path / "terraform.tfvars").read_text() == 'name = "x"\n'
    some_cloud(tmp_path).check()


@pytest.mark.parametrize(("cloud", "words"), [
    ("gcp", "Error waiting for instance to create: The zone 'us-central1-a' does not have enough resources available"),
    ("gcp", "A g2-standard-4 VM instance is currently unavailable in the us-central1-a zone."),
    ("gcp", "googleapi: Error 503: ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS"),
    ("aws", "api error InsufficientInstanceCapacity: We currently do not have sufficient p4d.24xlarge capacity"),
    ("aws", "Your instance type (p5.48xlarge) is not supported in your requested Availability Zone (us-east-1e)."),
])  # fmt: skip
def test_it_knows_how_a_cloud_says_that_a_zone_is_full(cloud: str, words: str) -> None:
    assert CLOUDS[cloud].is_full(words)


@pytest.mark.parametrize(
    "words", ["Error 403: Required 'compute.instances.create' permission", "Quota 'GPUS_ALL_REGIONS' exceeded"]
)
def test_another_error_is_no_full_zone(words: str) -> None:
    assert not any(cloud.is_full(words) for cloud in CLOUDS.values())
