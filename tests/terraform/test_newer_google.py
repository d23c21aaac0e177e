"""The GCP module on the newest major version of the provider, as far as pulumi-gcp's argument names tell of it.

The Python package is made from that provider's schema: an argument has its name there, a block that repeats is a
plural. What it no longer has is taken out of the schema of 6.50, what it asks for is asked for; then it is validated.
"""

import pytest

from tests.terraform import support
from tests.terraform.standin_google import newer, packages


@pytest.fixture(scope="session")
def google_newer(google_6):
    archive = packages.wheel(support.CACHE)
    if not archive:
        pytest.skip(f"{packages.PYTHON} cannot be had here: no index")
    return newer.schemas(archive, google_6)


def test_the_newer_version_is_newer(google_newer):
    assert newer.major(packages.wheel(support.CACHE)) >= 9


def test_every_resource_is_still_there(google_6, google_newer):
    assert google_newer.keys() == google_6.keys()


def test_the_module_is_valid_there(module, serving, google_newer):
    where, _ = module("gcp")
    assert "Success" in support.run(where, "validate", "-no-color", **serving(google_newer))


@pytest.mark.parametrize(
    ("file", "old", "new", "word"),
    [
        ("machines.tf", "machine_type  ", "machine_tipe  ", "machine_tipe"),
        ("machines.tf", "boot_disk {", "bot_disk {", "bot_disk"),
        ("access.tf", "  key     = local.key\n", "", r"\"key\""),
        ("machines.tf", "on_host_maintenance ", "on_guest_maintenance", "on_guest_maintenance"),
        ("schedule.tf", "vm_stop_schedule {", "vm_halt_schedule {", "vm_halt_schedule"),
    ],
)
@pytest.mark.parametrize("which", ["google_6", "google_newer"])
def test_what_is_wrong_is_found(tmp_path, serving, request, which, file, old, new, word):
    where = support.copy_of(tmp_path, "gcp")
    text = (where / file).read_text()
    assert old in text
    (where / file).write_text(text.replace(old, new))
    env = serving(request.getfixturevalue(which))
    support.run(where, "init", "-input=false", **env)
    told = support.run(where, "validate", "-json", fails=True, **env)
    assert word in told
