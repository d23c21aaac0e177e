"""What should be there, made from the targets files."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.prometheus.support import PROMETHEUS, promtool

sys.path.insert(0, str(PROMETHEUS))
from expected import JOBS, rules


def written(folder: Path, **files: str) -> list[dict[str, Any]]:
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


# A targets file as people write them, and what each machine is called.
WRITTEN = """
- targets: ['gpu-1.example.org:9100', '10.0.0.5:9100', '10.0.0.6', '[fd00::7]:9100', '42.x.org:9100', plain]
- {targets: ['n:1'], labels: {instance: 'gpu-2.example.org'}}
- {targets: ['n:1'], labels: {instance: 'gpu-3:9100'}}
- {targets: ['n:1'], labels: {instance: '10.0.0.8:9100'}}
- {targets: ['n:1'], labels: {instance: 'fd00::9'}}
- {targets: ['n:1'], labels: {instance: '43.x.org'}}
- {targets: ['n:1'], labels: {instance: 'a"b'}}
- {targets: ['none:1'], labels: {instance: ''}}
- {targets: ['empty:1'], labels: }
"""
CALLED = {
    "gpu-1", "10.0.0.5", "10.0.0.6", "fd00::7", "42", "plain", "gpu-2", "gpu-3", "10.0.0.8", "fd00::9", "43", 'a"b',
    "none", "empty",
}  # fmt: skip


def test_a_machine_is_called_the_same_by_prometheus_and_in_what_is_expected(tmp_path: Path) -> None:
    (tmp_path / "targets").mkdir()
    made = written(tmp_path / "targets", node=WRITTEN)
    configuration = shutil.copy(PROMETHEUS / "prometheus.yml", tmp_path)
    discovered = json.loads(promtool("check", "service-discovery", "--timeout=1s", configuration, "node"))

    assert {rule["labels"]["instance"] for rule in made} == CALLED
    assert {target["labels"]["instance"] for target in discovered} == CALLED


def test_every_job_about_machines_calls_them_alike() -> None:
    found = yaml.safe_load((PROMETHEUS / "prometheus.yml").read_text())["scrape_configs"]
    relabeled = {job["job_name"]: job.get("relabel_configs") for job in found}

    assert all(relabeled[name] == relabeled["node"] for name in JOBS)


def test_what_wants_tls_is_left_to_the_jobs_that_have_it(tmp_path: Path) -> None:
    (tmp_path / "targets").mkdir()
    (tmp_path / "targets" / "node.yml").write_text(
        '- {targets: ["a:9100"]}\n- {targets: ["b:9100"], labels: {instance: b, __web_config__: "yes"}}\n'
    )
    configuration = shutil.copy(PROMETHEUS / "prometheus.yml", tmp_path)
    found = json.loads(promtool("check", "service-discovery", "--timeout=1s", configuration, "node"))
    assert {one["discoveredLabels"]["__address__"]: one["labels"].get("instance") for one in found} == {
        "a:9100": "a", "b:9100": None}  # fmt: skip


def test_no_name_breaks_the_rules_that_are_made(tmp_path: Path) -> None:
    (tmp_path / "targets").mkdir()
    (tmp_path / "targets" / "node.yml").write_text(WRITTEN)
    (tmp_path / "expected.rules.yml").write_text(rules(tmp_path / "targets"))

    assert f"{len(CALLED)} rules found" in promtool("check", "rules", tmp_path / "expected.rules.yml")


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("x: y", "is no list"),
        ("- x", "'x' is no entry"),
        ("- {labels: {}}", "{'labels': {}} is no entry"),
        ("- targets: [5]", "[5]"),
        ("- {targets: ['a:1'], labels: {instance: 42}}", "names in quotes"),
        ("- {targets: ['a:1'], labels: [x]}", "['x']"),
        ("- [", "line 1"),
    ],
)
def test_a_file_that_is_none_is_named_with_what_is_wrong(tmp_path: Path, text: str, wrong: str) -> None:
    with pytest.raises(SystemExit) as caught:
        written(tmp_path, node=text)

    assert str(tmp_path / "node.yml") in str(caught.value) and wrong in str(caught.value)
