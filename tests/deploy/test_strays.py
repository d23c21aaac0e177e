"""What the cloud has and no state knows is told with what ends it; what cannot be asked is said."""

import pytest

from deploy import strays
from deploy.cloud import CLOUDS
from deploy.errors import DeployError
from tests.deploy.conftest import Program


def test_of_google_they_are_told_with_their_zone(program: Program) -> None:
    """Where gcloud is asked for this deployment in this project."""
    program("gcloud", 'case "$*" in *"--project=p "*"labels.app=trainvitals AND labels.deployment=night "*) '
            "printf 'night-gpu-1\\tus-central1-a\\n';; esac")  # fmt: skip
    with pytest.raises(DeployError, match=r"(?s)the deployment night .* cost money.*"
                       "gcloud compute instances delete --project=p night-gpu-1 --zone=us-central1-a"):  # fmt: skip
        strays.check(CLOUDS["gcp"], "night", "p")
    strays.check(CLOUDS["gcp"], "day", "p")


@pytest.mark.parametrize("cloud", CLOUDS)
def test_a_cloud_that_does_not_answer_is_said(program: Program, capsys: pytest.CaptureFixture[str], cloud: str) -> None:
    for name in ("gcloud", "aws"):
        program(name, "echo not logged in >&2; exit 1")
    strays.check(CLOUDS[cloud], "night", "somewhere")
    assert "that Terraform does not know was not looked at" in capsys.readouterr().out
