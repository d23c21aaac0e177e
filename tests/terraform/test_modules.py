"""Format, validity, and the modules' own tests, by terraform itself; for GCP with a stand-in for the provider."""

import json
import re

import pytest

from tests.terraform import support

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ9 ada@example"
KEYS = {"AWS_ACCESS_KEY_ID": "nobody", "AWS_SECRET_ACCESS_KEY": "nothing", "AWS_EC2_METADATA_DISABLED": "true"}
NOT_YET = (("aws_instance", "gpu"), ("aws_instance", "monitoring"), ("aws_eip", "monitoring"))


def test_the_folders_are_formatted():
    unformatted = support.run(support.TERRAFORM, "fmt", "-check", "-recursive", "-no-color")
    assert unformatted == ""


@pytest.mark.parametrize("cloud", support.CLOUDS)
def test_a_module_is_valid(module, cloud):
    where, env = module(cloud)
    assert "Success" in support.run(where, "validate", "-no-color", **env)


@pytest.mark.parametrize("monitoring", ["null", "{}"])
def test_a_state_that_knows_no_machine_yet_is_nothing_to_warn_of(module, tmp_path, monitoring):
    """As one is that was broken off while the machines were asked for."""
    where, env = module("aws")
    told = {"mode": "managed", "provider": 'provider["registry.terraform.io/hashicorp/aws"]', "instances": []}
    known = [told | {"type": kind, "name": name} for kind, name in NOT_YET]
    (tmp_path / "state").write_text(json.dumps({"version": 4, "lineage": "a", "serial": 1, "resources": known}))
    (tmp_path / "asked.tfvars").write_text(f'monitoring = {monitoring}\nssh_public_key = "{KEY}"\n')
    words = ["console", "-no-color", f"-state={tmp_path / 'state'}", f"-var-file={tmp_path / 'asked.tfvars'}"]
    assert support.run(where, *words, given="1 + 1\n", **env, **KEYS) == "2\n"


@pytest.mark.parametrize("cloud", support.CLOUDS)
@pytest.mark.parametrize("file", ["defaults", "access", "machines", "money", "refused"])
def test_a_module_passes_its_own_tests(mocked, cloud, file):
    where, env = mocked(cloud)
    stdout = support.run(where, "test", "-no-color", f"-filter=tests/{file}.tftest.hcl", **env)
    assert re.search(r"Success! [1-9]\d* passed, 0 failed", stdout)
