"""What should be there, made from the targets files."""

import sys
from pathlib import Path

import pytest
import yaml

from tests.prometheus.support import PROMETHEUS

sys.path.insert(0, str(PROMETHEUS))
from expected import instance, rules


def written(folder: Path, **files: str) -> list[dict[str, object]]:
    for name, text in files.items():
        (folder / f"{name}.yml").write_text(text)
    return list(yaml.safe_load(rules(folder))["groups"][0]["rules"])


def test_the_file_in_the_tree_is_up_to_date() -> None:
    assert (PROMETHEUS / "targets" / "expected.rules.yml").read_text() == rules(PROMETHEUS / "targets")


def test_each_target_is_expected_once(tmp_path: Path) -> None:
    entry = "- {targets: ['a:9100', 'b:9100']}\n- {targets: ['a:9101']}"

    assert [rule["labels"] for rule in written(tmp_path, node=entry)] == [
        {"job": "node", "instance": "a"},
        {"job": "node", "instance": "b"},
    ]


def test_no_targets_are_no_rules_and_still_a_rule_file(tmp_path: Path) -> None:
    assert written(tmp_path, node="[]") == []


def test_several_files_of_a_job_count(tmp_path: Path) -> None:
    one, other = (f"- {{targets: ['{name}:8080'], labels: {{instance: {name}}}}}" for name in ("a", "b"))

    assert len(written(tmp_path, trainvitals=one, **{"trainvitals-demo": other})) == 2


@pytest.mark.parametrize(
    ("entry", "address", "name"),
    [
        ({}, "gpu-1.example.org:9100", "gpu-1"),
        ({}, "10.0.0.5:9100", "10.0.0.5"),
        ({"labels": {"instance": "gpu-1.example.org"}}, "10.0.0.5:9100", "gpu-1"),
        ({"labels": {"instance": "gpu-1"}}, "x:1", "gpu-1"),
    ],
)
def test_names_are_bare_as_the_configuration_relabels_them(entry, address, name) -> None:
    assert instance(entry, address) == name
