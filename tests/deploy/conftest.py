import logging
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from deploy.cloud import CLOUDS
from deploy.terraform import Terraform

Program = Callable[[str, str], Path]
# Its machine is refused in the zones that a file names.
VARIABLES = """
variable "zones" { type = list(string) }
variable "zone" { default = "" }
variable "price" { default = 1 }
"""
MODULE = """
locals { zone = coalesce(var.zone, var.zones[0]) }
resource "terraform_data" "network" {}
resource "terraform_data" "machine" {
  triggers_replace = local.zone
  provisioner "local-exec" {
    command = "! grep -qx ${local.zone} ${path.module}/full || { echo Error: ZONE_RESOURCE_POOL_EXHAUSTED; exit 1; }"
  }
}
output "zone" { value = local.zone }
output "inventory" { value = "monitoring: {hosts: {a: {stack_node_price: ${var.price}}}}" }
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """Puts a shell script of that name before what is on the path."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    def put(name: str, script: str) -> Path:
        path = folder / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return path

    return put


@pytest.fixture(autouse=True)
def no_log() -> Iterator[None]:
    """A log that a test began ends with it."""
    yield
    for handler in [*logging.getLogger("deploy").handlers]:
        logging.getLogger("deploy").removeHandler(handler)
        handler.close()


@pytest.fixture
def made(tmp_path: Path) -> Callable[..., Terraform]:
    if not shutil.which("terraform"):
        pytest.skip("no terraform here")

    def make(*, full: str = "") -> Terraform:
        (tmp_path / "main.tf").write_text(MODULE)
        (tmp_path / "variables.tf").write_text(VARIABLES)
        (tmp_path / "terraform.tfvars").write_text('zones = ["a", "b", "c"]\n')
        (tmp_path / "prices.json").write_text('{"region": "a", "machine_types": {}}')
        (tmp_path / "full").write_text("\n".join(full) + "\n")
        return Terraform(replace(CLOUDS["gcp"], folder=tmp_path, machine="terraform_data"))

    return make


def deployed(terraform: Terraform) -> str:
    terraform.init()
    terraform.plan()
    terraform.apply(lambda *_: None)
    return str(terraform.outputs()["zone"])
