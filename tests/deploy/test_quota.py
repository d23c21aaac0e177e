"""A quota that is too small is told before anything is made; one that nobody tells stops nothing."""

import json
from typing import Any

import pytest

from deploy.cloud import CLOUDS
from deploy.errors import DeployError
from deploy.quota import check
from tests.deploy.conftest import Program


def gcp_machine(machine_type: str, *, spot: bool = False, accelerator: tuple[str, int] | None = None) -> dict[str, Any]:
    added = [{"type": accelerator[0], "count": accelerator[1]}] if accelerator else []
    after = {"machine_type": machine_type, "zone": "us-central1-a", "project": "mine", "guest_accelerator": added,
             "scheduling": [{"provisioning_model": "SPOT" if spot else "STANDARD"}]}  # fmt: skip
    return {"type": "google_compute_instance", "change": {"actions": ["create"], "after": after}}


def aws_machine(instance_type: str, *, spot: bool = False) -> dict[str, Any]:
    after = {"instance_type": instance_type, "instance_market_options": [{"market_type": "spot"}] if spot else []}
    return {"type": "aws_instance", "change": {"actions": ["create"], "after": after}}


def planned(*machines: dict[str, Any]) -> dict[str, Any]:
    return {"resource_changes": list(machines)}


def gcloud(program: Program, limits: dict[str, tuple[int, int]]) -> None:
    told = {"quotas": [{"metric": name, "limit": limit, "usage": used} for name, (limit, used) in limits.items()]}
    program("gcloud", f"echo '{json.dumps(told)}'")


def test_a_quota_that_is_enough_says_nothing(program: Program, capsys: pytest.CaptureFixture[str]) -> None:
    gcloud(program, {"NVIDIA_L4_GPUS": (3, 1), "GPUS_ALL_REGIONS": (2, 0)})
    check(CLOUDS["gcp"], planned(gcp_machine("g2-standard-4"), gcp_machine("g2-standard-4")))
    assert capsys.readouterr().out == ""


T4 = ("nvidia-tesla-t4", 2)


@pytest.mark.parametrize(("machine", "limits", "told"), [
    (gcp_machine("g2-standard-24"), {"NVIDIA_L4_GPUS": (2, 1)}, "in us-central1 allows 2, 1 are in use, 2 more"),
    (gcp_machine("a2-highgpu-8g", spot=True), {"PREEMPTIBLE_NVIDIA_A100_GPUS": (1, 0)}, "PREEMPTIBLE_NVIDIA_A100_GPUS"),
    (gcp_machine("n1-standard-4", accelerator=T4), {"NVIDIA_T4_GPUS": (1, 0)}, "2 more are wanted"),
    (gcp_machine("g2-standard-4"), {"NVIDIA_L4_GPUS": (1, 0), "GPUS_ALL_REGIONS": (0, 0)}, "GPUS_ALL_REGIONS in all"),
])  # fmt: skip
def test_one_that_is_too_small_is_told(
    program: Program, machine: dict[str, Any], limits: dict[str, tuple[int, int]], told: str
) -> None:
    gcloud(program, limits)
    with pytest.raises(DeployError, match=told):
        check(CLOUDS["gcp"], planned(machine))


def test_spot_machines_count_as_others_where_there_is_no_quota_for_them(program: Program) -> None:
    gcloud(program, {"NVIDIA_L4_GPUS": (0, 0)})
    with pytest.raises(DeployError, match="NVIDIA_L4_GPUS"):
        check(CLOUDS["gcp"], planned(gcp_machine("g2-standard-4", spot=True)))


def test_what_is_not_told_is_unknown_and_not_zero(program: Program) -> None:
    gcloud(program, {"CPUS": (8, 0)})
    check(CLOUDS["gcp"], planned(gcp_machine("a3-highgpu-8g")))


def test_who_does_not_answer_stops_nothing(program: Program, capsys: pytest.CaptureFixture[str]) -> None:
    program("gcloud", "echo 'ERROR: you are not logged in' >&2; exit 1")
    check(CLOUDS["gcp"], planned(gcp_machine("g2-standard-4")))
    assert "Quotas were not looked at: ERROR: you are not logged in" in capsys.readouterr().out


def test_what_stays_as_it_is_wants_no_quota(program: Program) -> None:
    program("gcloud", "exit 1")
    kept = gcp_machine("g2-standard-4") | {"change": {"actions": ["no-op"], "after": {}}}
    check(CLOUDS["gcp"], planned(kept))


def test_aws_counts_processors_of_a_family(program: Program) -> None:
    program("aws", """echo '{"Quota": {"QuotaName": "Running On-Demand G and VT instances", "Value": 8.0}}'""")
    check(CLOUDS["aws"], planned(aws_machine("g5.xlarge"), aws_machine("g6.xlarge")))
    with pytest.raises(DeployError, match=r"G and VT instances \(L-DB2E81BA\) in this region allows 8, .* 12 more"):
        check(CLOUDS["aws"], planned(*[aws_machine("g5.xlarge")] * 3))
