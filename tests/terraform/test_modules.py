"""Format, validity, and the modules' own tests, by terraform itself; for GCP with a stand-in for the provider."""

import re

import pytest

from tests.terraform import support


def test_the_folders_are_formatted():
    unformatted = support.run(support.TERRAFORM, "fmt", "-check", "-recursive", "-no-color")
    assert unformatted == ""


@pytest.mark.parametrize("cloud", support.CLOUDS)
def test_a_module_is_valid(module, cloud):
    where, env = module(cloud)
    assert "Success" in support.run(where, "validate", "-no-color", **env)


@pytest.mark.parametrize("cloud", support.CLOUDS)
@pytest.mark.parametrize("file", ["defaults", "access", "machines", "money", "refused"])
def test_a_module_passes_its_own_tests(mocked, cloud, file):
    where, env = mocked(cloud)
    stdout = support.run(where, "test", "-no-color", f"-filter=tests/{file}.tftest.hcl", **env)
    assert re.search(r"Success! [1-9]\d* passed, 0 failed", stdout)
