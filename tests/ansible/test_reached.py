"""An upgrade with a machine that is off says that nothing was upgraded, why, and how the others are."""

import json
from pathlib import Path

import pytest

from tests.ansible import local
from tests.stack.bases import ROOT

HERE = {"ansible_connection": "local", "ansible_python_interpreter": local.PYTHON}
GONE = {"ansible_host": "127.0.0.1", "ansible_port": 1, "ansible_ssh_retries": 0}


@pytest.mark.parametrize(("limit", "status", "touched"), [("all", 2, []), ("all:!gpu2", 0, ["gpu1", "mon"])])
def test_all_are_changed_or_none_and_the_reason_is_a_sentence(
    tmp_path: Path, limit: str, status: int, touched: list[str]
) -> None:
    told = {"gpu_nodes": {"hosts": {"gpu1": HERE, "gpu2": GONE}}, "monitoring": {"hosts": {"mon": HERE}}}
    (tmp_path / "more.yml").write_text(json.dumps(told))
    touch = {"ansible.builtin.raw": f"touch {tmp_path}/{{{{ inventory_hostname }}}}.touched"}
    done = local.played(tmp_path, [touch], "--limit", limit, hosts="gpu_nodes:monitoring",
                        after=ROOT / "ansible" / "reached.yml", inventory=tmp_path / "more.yml")  # fmt: skip
    text = " ".join(done.stdout.split())
    assert done.returncode == status, text
    assert sorted(path.stem for path in tmp_path.glob("*.touched")) == touched
    said = "gpu2: it does not let us in by SSH, so nothing was upgraded on any machine: "
    assert (said in text) is (status != 0)
    assert ("Connection refused" in text and "--limit 'all:!gpu2'" in text.replace("''", "'")) is (status != 0)


def test_an_upgrade_looks_before_it_changes() -> None:
    text = (ROOT / "ansible" / "upgrade.yml").read_text()
    assert text.index("import_playbook: reached.yml") < text.index("hosts: gpu_nodes")
