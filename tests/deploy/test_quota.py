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


def changed(before: dict[str, Any], after: dict[str, Any] | None, *actions: str) -> dict[str, Any]:
    """The first becomes the second, or goes."""
    there = before["change"]["after"]
    then = after["change"]["after"] if after else None
    return before | {"change": {"actions": list(actions), "before": there, "after": then}}


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


def test_of_several_lines_that_it_says_the_error_is_told(program: Program, capsys: pytest.CaptureFixture[str]) -> None:
    program("gcloud", "printf 'ERROR: no account is selected.\\nPlease run:\\n\\nto select one.\\n' >&2; exit 1")
    check(CLOUDS["gcp"], planned(gcp_machine("g2-standard-4")))
    assert "Quotas were not looked at: ERROR: no account is selected." in capsys.readouterr().out


def test_what_stays_as_it_is_wants_no_quota(program: Program) -> None:
    program("gcloud", "exit 1")
    kept = gcp_machine("g2-standard-4") | {"change": {"actions": ["no-op"], "after": {}}}
    check(CLOUDS["gcp"], planned(kept))


L4, TWO_L4 = gcp_machine("g2-standard-4"), gcp_machine("g2-standard-24")
# As Google tells of an A100 that is there.
A100 = gcp_machine("a2-highgpu-1g", accelerator=("nvidia-tesla-a100", 1))
T4_THERE = gcp_machine("n1-standard-4", accelerator=("projects/p/zones/z/acceleratorTypes/nvidia-tesla-t4", 1))
T4_NEW = gcp_machine("n1-standard-4", accelerator=("nvidia-tesla-t4", 1))


@pytest.mark.parametrize("changes", [
    [changed(L4, L4, "delete", "create")],
    [changed(L4, L4, "update")],
    [changed(L4, None, "delete"), L4],
    [changed(A100, A100, "delete", "create")],
    [changed(T4_THERE, T4_NEW, "delete", "create")],
])  # fmt: skip
def test_what_goes_makes_room(
    program: Program, capsys: pytest.CaptureFixture[str], changes: list[dict[str, Any]]
) -> None:
    full = dict.fromkeys(("NVIDIA_L4_GPUS", "NVIDIA_A100_GPUS", "NVIDIA_T4_GPUS", "GPUS_ALL_REGIONS"), (1, 1))
    gcloud(program, full)
    check(CLOUDS["gcp"], planned(*changes))
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("actions", [("delete", "create"), ("update",)])
def test_a_machine_that_becomes_a_larger_one_wants_the_rest(program: Program, actions: tuple[str, ...]) -> None:
    gcloud(program, {"NVIDIA_L4_GPUS": (1, 1)})
    with pytest.raises(DeployError, match="NVIDIA_L4_GPUS in us-central1 allows 1, 1 are in use, 1 more are wanted"):
        check(CLOUDS["gcp"], planned(changed(L4, TWO_L4, *actions)))


def test_a_quota_that_became_smaller_than_what_runs_stops_no_change_of_that(program: Program) -> None:
    gcloud(program, {"NVIDIA_L4_GPUS": (0, 1), "GPUS_ALL_REGIONS": (0, 1)})
    check(CLOUDS["gcp"], planned(changed(L4, L4, "update")))


@pytest.mark.parametrize(("machine", "said"), [
    (gcp_machine("a3-highgpu-8g"), "NVIDIA_H100_GPUS, which us-central1 does not tell"),
    (gcp_machine("g4-standard-48"), "g4-standard-48, whose quota prices.json does not name"),
])  # fmt: skip
def test_what_is_not_counted_is_said(
    program: Program, capsys: pytest.CaptureFixture[str], machine: dict[str, Any], said: str
) -> None:
    gcloud(program, {"CPUS": (8, 0)})
    check(CLOUDS["gcp"], planned(machine, machine, gcp_machine("e2-standard-2"), gcp_machine("n2-standard-2")))
    assert capsys.readouterr().out == f"  Quotas: not looked at for {said}\n"


@pytest.mark.parametrize(("name", "spot", "code"), [
    ("gr6.4xlarge", False, "L-DB2E81BA"), ("p6-b200.48xlarge", False, "L-417A185B"), ("p5x.large", True, "L-C4BD4855"),
])  # fmt: skip
def test_of_aws_a_type_that_the_table_lacks_counts_for_its_family(
    program: Program, capsys: pytest.CaptureFixture[str], name: str, spot: bool, code: str
) -> None:
    quota = '{"Quota": {"QuotaName": "its family", "Value": 0.0}}'
    program("aws", f"""case "$*" in *--quota-code={code}*) echo '{quota}';; *) exit 1;; esac""")
    with pytest.raises(DeployError, match=rf"its family \({code}\) .* allows 0, .* 1 more are wanted"):
        check(CLOUDS["aws"], planned(aws_machine(name, spot=spot)))
    assert f"not looked at for the processors of {name}, which prices.json does not name" in capsys.readouterr().out


def test_of_aws_a_machine_that_becomes_another_counts_as_that(program: Program) -> None:
    program("aws", """echo '{"Quota": {"QuotaName": "G and VT", "Value": 8.0}}'""")
    small, large = aws_machine("g5.xlarge"), aws_machine("g5.4xlarge")
    check(CLOUDS["aws"], planned(changed(small, small, "delete", "create")))
    with pytest.raises(DeployError, match=r"allows 8, .* 16 more are wanted"):
        check(CLOUDS["aws"], planned(changed(small, large, "update")))


def test_aws_counts_processors_of_a_family(program: Program) -> None:
    program("aws", """echo '{"Quota": {"QuotaName": "Running On-Demand G and VT instances", "Value": 8.0}}'""")
    check(CLOUDS["aws"], planned(aws_machine("g5.xlarge"), aws_machine("g6.xlarge")))
    with pytest.raises(
        DeployError,
        match=r"G and VT instances \(L-DB2E81BA\) in this region allows 8, what runs there counts too, 12 more",
    ):
        check(CLOUDS["aws"], planned(*[aws_machine("g5.xlarge")] * 3))


def test_aws_is_asked_for_the_region_of_the_zones(program: Program) -> None:
    program(
        "aws",
        """case "$*" in *--region=eu-west-1*) ;; *) exit 1;; esac
echo '{"Quota": {"QuotaName": "G and VT", "Value": 0.0}}'""",
    )
    zones = {"variables": {"zones": {"value": ["eu-west-1a", "eu-west-1b"]}}}
    with pytest.raises(DeployError, match="in eu-west-1 allows 0"):
        check(CLOUDS["aws"], planned(aws_machine("g5.xlarge")) | zones)
