"""Terraform as the tests call it: on copies of the folders, with plugins from a mirror on this machine.

TERRAFORM_PLUGIN_DIR=/folder/of/plugins      where none of the usual folders has them
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TERRAFORM = ROOT / "terraform"
CACHE = ROOT / ".cache" / "terraform"
CLOUDS = ("gcp", "aws")
USUAL = ("/opt", "/usr/share/terraform", "/usr/local/share/terraform", "~/.terraform.d")
SECONDS = 300


def program():
    return shutil.which("terraform") or pytest.skip("no terraform here")


def plugins(provider):
    """The mirror's folder, for terraform init -plugin-dir."""
    if named := os.environ.get("TERRAFORM_PLUGIN_DIR"):
        return Path(named)
    for root in USUAL:
        for depth in ("*", "*/*", "*/*/*"):
            if found := sorted(Path(root).expanduser().glob(f"{depth}/hashicorp/{provider}")):
                return found[0].parents[2]
    return pytest.skip(f"no plugin of the provider {provider} here: set TERRAFORM_PLUGIN_DIR")


def environment(**more):
    """Without the user's settings and clouds: a test reaches nothing outside."""
    foreign = ("TF_", "AWS_", "GOOGLE_", "CLOUDSDK_")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(foreign)}
    return kept | {"TF_IN_AUTOMATION": "1", "CHECKPOINT_DISABLE": "1"} | more


def run(folder, *words, fails=False, given=None, **more):
    told = {"env": environment(**more), "capture_output": True, "text": True, "timeout": SECONDS, "input": given}
    done = subprocess.run([program(), *words], cwd=folder, check=False, **told)
    said = f"terraform {' '.join(words)}: {done.returncode}\n{done.stdout}{done.stderr}"
    assert (done.returncode != 0) == fails, said
    return done.stdout


def copy_of(folder, cloud):
    """As it is in a fresh clone, beside what it takes from the folder next to it."""
    for name in (cloud, "inventory"):
        left_out = shutil.ignore_patterns(
            ".terraform", "*.tfstate*", "*.tfvars", "*.auto.tfvars.json", ".terraform.lock.hcl"
        )
        shutil.copytree(TERRAFORM / name, folder / name, ignore=left_out)
    return folder / cloud


def told(stdout):
    """The messages of a command with -json."""
    return [json.loads(line) for line in stdout.splitlines() if line.startswith("{")]
