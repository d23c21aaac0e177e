"""checkov over both modules: no finding, and no skip without its reason or without effect.

It has an environment of its own, since it pins what others want newer:

    python3 -m venv .cache/checkov
    .cache/checkov/bin/python -m pip install --require-hashes -r requirements/checkov.txt
"""

import json
import re
import subprocess

import pytest

from tests.terraform import support

CHECKOV = support.ROOT / ".cache" / "checkov" / "bin" / "checkov"
SKIP = re.compile(r"#\s*checkov:skip=(\w+)(?::\s*(\S.*))?")


@pytest.fixture(scope="module")
def report():
    if not CHECKOV.exists():
        pytest.skip("checkov is not installed: see tests/terraform/test_checkov.py")
    words = [CHECKOV, "-d", "terraform", "--framework", "terraform", "--skip-download", "--skip-path", "/tests/"]
    told = {"env": support.environment(), "capture_output": True, "text": True, "timeout": 300}
    done = subprocess.run([*words, "-o", "json"], cwd=support.ROOT, check=False, **told)
    return json.loads(done.stdout)


def test_every_file_was_read(report):
    assert report["results"]["parsing_errors"] == [] and report["summary"]["passed"] > 50


def test_there_is_no_finding(report):
    found = [f"{one['check_id']} {one['resource']}: {one['check_name']}" for one in report["results"]["failed_checks"]]
    assert found == []


def skips():
    for path in sorted(support.TERRAFORM.rglob("*.tf")):
        if ".terraform" not in path.parts:
            name = f"/{path.relative_to(support.TERRAFORM)}"
            yield from ((name, check, why) for check, why in SKIP.findall(path.read_text()))


def test_every_skip_says_why():
    assert [(name, check) for name, check, why in skips() if len(why) < 15] == []


def test_every_skip_is_needed(report):
    used = {(one["file_path"], one["check_id"]) for one in report["results"]["skipped_checks"]}
    assert {(name, check) for name, check, _ in skips()} - used == set()
