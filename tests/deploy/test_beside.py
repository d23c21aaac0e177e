"""With CLOUD each run writes the inventory anew; what the user says of it stands beside it, counts, and stays."""

import json
from pathlib import Path

import pytest

from deploy import kept, ways
from deploy.cloud import CLOUDS
from deploy.errors import DeployError
from deploy.machines import Machines
from deploy.site import Site
from tests.deploy.conftest import Program

# As Terraform writes it.
MADE = """"gpu_nodes":
  "hosts":
    "one-gpu-1":
      "stack_expected_gpus": 1
"monitoring":
  "hosts":
    "one-monitoring": {}
"""
OWN = "stack_public_name: gpus.example.com\nstack_env: {GRAFANA_PORT: 3001}\nstack_expected_gpus: 7\n"


@pytest.fixture
def beside(tmp_path: Path, program: Program, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the inventory, of machines that are made."""
    monkeypatch.setattr(kept, "ROOT", tmp_path)
    program("gcloud", "exit 1")
    program("terraform", f"""printf '%s' '{json.dumps({"inventory": {"value": MADE}})}'""")
    folder = tmp_path / "ansible" / "inventory"
    for name in ("group_vars", "host_vars"):
        (folder / name).mkdir(parents=True)
    return folder


def test_it_counts_for_all_machines_of_the_cloud_and_stays(beside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = beside / "group_vars" / "gcp.yml"
    own.write_text(OWN)
    (beside / "group_vars" / "aws.yml").write_text("stack_public_name: another.example.com\n")
    for _ in range(2):
        site = Site(Machines(CLOUDS["gcp"]).inventory())
    ways.tell(site, "CLOUD=gcp")
    told = capsys.readouterr().out
    assert "https://gpus.example.com" in told and "http://localhost:3001 (user admin)" in told
    assert {site.variables(host)["stack_public_name"] for host in site.machines} == {"gpus.example.com"}
    assert own.read_text() == OWN


def test_what_terraform_says_of_a_machine_goes_before_it_unless_it_is_said_of_that_machine(beside: Path) -> None:
    (beside / "group_vars" / "gcp.yml").write_text(OWN)
    assert Site(Machines(CLOUDS["gcp"]).inventory()).variables("one-gpu-1")["stack_expected_gpus"] == 1
    (beside / "host_vars" / "one-gpu-1.yml").write_text("stack_expected_gpus: 2\n")
    assert Site(Machines(CLOUDS["gcp"]).inventory()).variables("one-gpu-1")["stack_expected_gpus"] == 2


@pytest.mark.parametrize(("text", "said"), [
    ("stack_public_nam: x\n", "stack_public_nam is no variable of ours: stack_public_name is"),
    ("stack_env: {\n", "gcp.yml"),
])  # fmt: skip
def test_what_is_wrong_there_is_told(beside: Path, text: str, said: str) -> None:
    (beside / "group_vars" / "gcp.yml").write_text(text)
    with pytest.raises(DeployError, match=said):
        Site(Machines(CLOUDS["gcp"]).inventory())
