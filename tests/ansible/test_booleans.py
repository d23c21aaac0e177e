"""What is given by -e is text: `false` is no boolean until it is made one, and to some Ansible it is true."""

import re
from pathlib import Path

import pytest
import yaml

from tests.ansible import local
from tests.stack.bases import ROOT

ANSIBLE = ROOT / "ansible"
READ = [path for path in sorted([*ANSIBLE.glob("*.yml"), *ANSIBLE.glob("roles/*/*/*")])
        if path.suffix in (".yml", ".j2") and path.parent.name not in ("meta", "defaults")]  # fmt: skip
# Made one, or the argument of a module, which makes it one; `name: …` and `name=…` are what a message says to give.
RIGHT = r"(?:\s*\|\s*default\(\w+\))?\s*\|\s*bool\b|[:=]| is false:"
TYPED = r"^ *install_recommends: .*$"


def booleans() -> set[str]:
    found = set()
    for path in ANSIBLE.glob("roles/*/meta/argument_specs.yml"):
        for entry in yaml.safe_load(path.read_text())["argument_specs"].values():
            found |= {name for name, told in entry["options"].items() if told["type"] == "bool"}
    return found


def uses(name: str, text: str) -> list[str]:
    """Those that would take it as it was given."""
    text = re.sub(TYPED, "", text, flags=re.MULTILINE)
    return re.findall(rf".*\b{name}\b(?!{RIGHT}).*", text)


def test_every_argument_that_is_a_boolean_is_made_one_where_it_is_read() -> None:
    names = booleans() | {"stack_remove_confirmed", "stack_restore_confirmed"}
    assert {"stack_remove_journal", "stack_backup_journal"} < names
    found = {f"{path.name}: {name}": said for path in READ for name in names if (said := uses(name, path.read_text()))}
    assert found == {}


@pytest.mark.parametrize(("word", "stays"), [("false", True), ("true", False), ("no", True), (True, False)])
def test_the_journal_goes_only_where_that_is_said(word: object, stays: bool, tmp_path: Path) -> None:
    (tmp_path / "journal").mkdir()
    tasks = yaml.safe_load((ANSIBLE / "roles/stack/tasks/remove.yml").read_text())
    (last,) = [task for task in tasks if task["name"] == "Remove the journal"]
    done = local.played(tmp_path, [last], stack_journal=str(tmp_path / "journal"), stack_remove_journal=word)
    assert done.returncode == 0, done.stdout
    assert (tmp_path / "journal").exists() is stays
