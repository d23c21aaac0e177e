"""What stands in the way of a deployment stops it with its reason, and the machine stays as it was."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ansible.support import state
from tests.ansible.test_preflight import OBSTACLES
from tests.rehearsal.deployment import Deployment
from tests.rehearsal.machines import Machine

HOST = "spoilt"
NAMES = ("no sudo", "wrong system", "clock off", "disk full", "port taken")
SMALL = {"base_disk_free_mib": {"/var/lib/docker": 64}}


@pytest.fixture(scope="module")
def spoilt(fresh: Deployment) -> Iterator[Path]:
    """An inventory of one machine that is a whole site, beside the site's own."""
    whole = Machine("trixie", groups=("others",), tmpfs={"/var/lib/docker": "size=100m"})
    site = fresh.site
    site.add({HOST: whole})
    inventory = site.folder / "spoilt.yml"
    told = (f"ansible_host: {site.addresses[HOST]}, ansible_user: admin, ansible_ssh_private_key_file: {site.key},"
            f" ansible_ssh_common_args: '-o UserKnownHostsFile={site.known_hosts}'")  # fmt: skip
    inventory.write_text(f"monitoring: {{hosts: {{{HOST}: {{{told}}}}}}}\ngpu_nodes: {{hosts: {{{HOST}: {{}}}}}}\n")
    yield inventory
    site.remove(HOST)


@pytest.mark.parametrize("name", NAMES)
def test_it_stops_with_the_reason_and_changes_nothing(fresh: Deployment, spoilt: Path, name: str) -> None:
    one = OBSTACLES[name]
    fresh.site.run(HOST, one.spoil)
    try:
        before = state(fresh.site, HOST)
        played = fresh.play("site.yml", check=False, inventory=spoilt, **SMALL)
        assert f"{HOST}: " in played.text
        assert one.says in " ".join(played.text.split()), played.text[-4000:]
        assert (played.changed[HOST], played.failed[HOST]) == (0, 1)
        assert sorted(set(state(fresh.site, HOST)) ^ set(before)) == []
    finally:
        fresh.site.run(HOST, one.mend)
