"""The stack's one-shot jobs, each as the container runs it: targets, Grafana's password, the health check."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.collector.support import serving, wait_for
from tests.compose.files import ROOT, SERVICES
from trainvitals.stack.health import problem
from trainvitals.stack.journal_folder import problem as folder_problem

PROMETHEUS = yaml.safe_load((ROOT / "prometheus" / "prometheus.yml").read_text())


def job(*words: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-m", "trainvitals.stack", *words], capture_output=True, text=True,
                          timeout=30, check=False, env={**os.environ, **environ})  # fmt: skip


def targets(folder: Path, profiles: str, **environ: str) -> dict[str, list[tuple[str, str]]]:
    """What is written for each job: target and instance."""
    shipped, out = folder / "shipped", folder / "out"
    shipped.mkdir(exist_ok=True)
    out.mkdir(exist_ok=True)
    environ |= {"COMPOSE_PROFILES": profiles, "TRAINVITALS_HOSTNAME": "gpu1"}
    done = job("targets", str(shipped), "--out", str(out), **environ)
    assert (done.returncode, done.stderr) == (0, "")
    return {path.stem: [(target, entry.get("labels", {}).get("instance", "")) for entry in yaml.safe_load(
            path.read_text()) for target in entry["targets"]]
            for path in out.glob("*.yml") if path.name != "expected.rules.yml"}  # fmt: skip


def test_what_runs_here_is_scraped_under_this_machine_s_name(tmp_path: Path) -> None:
    assert targets(tmp_path, "node,server") == {
        "trainvitals": [("collector:8080", "gpu1")], "node": [("node-exporter:9100", "gpu1")],
        "dcgm": [], "nvidia-smi": []}  # fmt: skip
    more = targets(tmp_path, "server, dcgm-profiling ,nvidia-smi,demo")
    assert more["trainvitals"] == [("collector:8080", "gpu1"), ("demo:8080", "demo-1"), ("demo:8081", "demo-2")]
    assert more["node"] == []
    assert more["dcgm"] == [("dcgm-exporter:9400", "gpu1")]
    assert more["nvidia-smi"] == [("nvidia-smi-exporter:9835", "gpu1")]


def locked(folder: Path) -> set[str]:
    """The targets that are left to the jobs of prometheus/web."""
    entries = [entry for path in (folder / "out").glob("*.yml") if path.name != "expected.rules.yml"
               for entry in yaml.safe_load(path.read_text())]  # fmt: skip
    return {target for entry in entries for target in entry["targets"] if "__web_config__" in entry.get("labels", {})}


@pytest.mark.parametrize(("knob", "services"), [
    ("TRAINVITALS_WEB_CONFIG", {"collector:8080"}),
    ("EXPORTERS_WEB_CONFIG", {"node-exporter:9100", "dcgm-exporter:9400"})])  # fmt: skip
def test_what_has_a_web_configuration_here_is_left_to_the_jobs_that_have_one_too(
    knob: str, services: set[str], tmp_path: Path
) -> None:
    targets(tmp_path, "node,server,dcgm,nvidia-smi,demo", **{knob: "/etc/trainvitals/web.yml"})
    assert locked(tmp_path) == services
    targets(tmp_path, "node,server,dcgm,nvidia-smi,demo", **{knob: ""})
    assert locked(tmp_path) == set()
    assert knob in SERVICES["targets"]["environment"]


def test_other_machines_stay_as_their_file_has_them(tmp_path: Path) -> None:
    (tmp_path / "shipped").mkdir()
    (tmp_path / "shipped" / "trainvitals.yml").write_text(
        "- targets: [collector:8080]\n  labels: {instance: workstation}\n"
        "- targets: [gpu2:8080]\n  labels: {instance: gpu2, rack: a}\n- targets: ['gpu3.example.org:8080']\n"
    )
    (tmp_path / "shipped" / "trainvitals-cloud.yml").write_text("- targets: ['10.0.0.4:8080']\n")
    found = targets(tmp_path, "server")["trainvitals"]
    assert found[:2] == [("collector:8080", "gpu1"), ("10.0.0.4:8080", "")]
    assert found[2:] == [("gpu2:8080", "gpu2"), ("gpu3.example.org:8080", "")]
    assert "rack: a" in (tmp_path / "out" / "trainvitals.yml").read_text()
    rules = yaml.safe_load((tmp_path / "out" / "expected.rules.yml").read_text())["groups"][0]["rules"]
    assert {rule["record"] for rule in rules} == {"target:expected:info"}
    assert {(rule["labels"]["job"], rule["labels"]["instance"]) for rule in rules} == {
        ("trainvitals", name) for name in ("gpu1", "10.0.0.4", "gpu2", "gpu3")}  # fmt: skip


@pytest.mark.parametrize("text", [
    "targets: [a:1]", "- nonsense", "- labels: {instance: a}", "- targets: [5]", "- targets: []", "- targets: a:1",
    "- targets: [a:1]\n  labels: [a]", "- targets: [a:1]\n  labels: {a: [b]}", "- targets: [a:1]\n  labels: {1: b}",
    "- targets: [http://a:1/x]", "- targets: [null]", "- targets: ['']", "- targets: [a:1]\n  label: {instance: a}",
    "- targets: [a:1", "- targets: [\x07]"])  # fmt: skip
def test_a_targets_file_of_another_shape_is_named(text: str, tmp_path: Path) -> None:
    (tmp_path / "node.yml").write_text(text)
    done = job("targets", str(tmp_path), "--out", str(tmp_path))
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"{tmp_path / 'node.yml'}: write a list of ")


def relabelled(target: str, instance: str) -> str:
    """By prometheus.yml's own rules."""
    labels = {"__address__": target, "instance": instance}
    (job,) = [job for job in PROMETHEUS["scrape_configs"] if job["job_name"] == "node"]
    for rule in job["relabel_configs"]:
        if rule.get("action") == "drop":
            assert rule["source_labels"] == ["__web_config__"]
            continue
        assert rule.keys() <= {"source_labels", "regex", "target_label", "replacement"}
        regex = re.compile(rule["regex"], re.ASCII | re.DOTALL)
        if match := regex.fullmatch(";".join(labels.get(name, "") for name in rule["source_labels"])):
            labels[rule["target_label"]] = match.expand(re.sub(r"\$\{?(\d)\}?", r"\\\1", rule.get("replacement", "$1")))
    return labels["instance"] or target


@pytest.mark.parametrize(("target", "instance"), [
    ("g3:9100", ""), ("g3.x.org:9100", ""), ("42.x.org:9100", ""), ("10.0.0.4:9100", ""), ("10.0.0.4", ""),
    ("[fd00::7]:9100", ""), ("g3", ""), ("a:1", "g3:9100"), ("a:1", "g3.x.org"), ("a:1", "42.x.org"), ("a:1", "42"),
    ("a:1", "10.0.0.4"), ("a:1", "10.0.0.4:9100"), ("a:1", "[fd00::7]:9100"), ("a:1", "fd00::7")])  # fmt: skip
def test_what_should_be_there_has_the_name_that_prometheus_gives_it(target: str, instance: str, tmp_path: Path) -> None:
    (tmp_path / "shipped").mkdir()
    (tmp_path / "shipped" / "node.yml").write_text(
        yaml.safe_dump([{"targets": [target], "labels": {"instance": instance} if instance else {}}]))  # fmt: skip
    targets(tmp_path, "server")
    rules = yaml.safe_load((tmp_path / "out" / "expected.rules.yml").read_text())["groups"][0]["rules"]
    (rule,) = [rule for rule in rules if rule["labels"]["job"] == "node"]
    assert rule["labels"]["instance"] == relabelled(target, instance)


def test_a_target_is_a_service_of_the_composition_and_its_port() -> None:
    from trainvitals.stack.targets import OWN, PROFILES_OF

    for target in OWN.values():
        service, _, port = target.partition(":")
        assert SERVICES[service]["ports"][0].endswith(f":{port}")
        same = [name for name in SERVICES if name in (service, f"{service}-profiling")]
        assert {profile for name in same for profile in SERVICES[name]["profiles"]} == PROFILES_OF[service]


@pytest.mark.parametrize(("name", "within", "fix"), [
    ("/srv", "", "of a folder of its own"), ("/etc/x", "", "of a folder of its own"),
    ("/data/mine", "photos", "it holds 'photos', which is no part of a journal: give a folder")])  # fmt: skip
def test_a_folder_that_is_no_journal_s_is_opened_to_nobody(name: str, within: str, fix: str, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    if within:
        (tmp_path / within).mkdir()
    done = job("journal", str(tmp_path), TRAINVITALS_DIR=name, TRAINVITALS_USER="10001:10001")
    assert done.returncode == 2 and fix in done.stderr and f"TRAINVITALS_DIR: '{name}'" in done.stderr
    assert tmp_path.stat().st_mode & 0o7777 == 0o755


def test_a_journal_with_runs_is_opened_again(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    tmp_path.chmod(0o700)
    assert job("journal", str(tmp_path), TRAINVITALS_DIR="/data/runs", TRAINVITALS_USER="10001:10001").returncode == 0
    assert tmp_path.stat().st_mode & 0o7777 == 0o1777


def owned(user: int, group: int, mode: int) -> os.stat_result:
    return os.stat_result((mode, 0, 0, 2, user, group, 0, 0, 0, 0))


def test_the_journal_s_folder_is_opened_where_the_job_s_user_owns_it(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    done = job("journal", str(tmp_path), TRAINVITALS_DIR="/data/runs", TRAINVITALS_USER="10001:10001")
    assert (done.returncode, done.stderr) == (0, "")
    assert tmp_path.stat().st_mode & 0o7777 == 0o1777


@pytest.mark.skipif(os.geteuid() != 0, reason="acting as another user needs root")
def test_somebody_s_own_folder_stays_as_it_is_and_the_fix_is_told(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    os.chown(tmp_path, 1000, 1001)
    done = job("journal", str(tmp_path), TRAINVITALS_DIR="/data/my runs", TRAINVITALS_USER="10001:10001")
    assert done.returncode == 2
    for word in ("'/data/my runs'", "user 1000", "TRAINVITALS_USER=1000:1001", "sudo chmod 1777 '/data/my runs'"):
        assert word in done.stderr
    assert job("journal", str(tmp_path), TRAINVITALS_USER="1000:1001").returncode == 0
    assert tmp_path.stat().st_mode & 0o7777 == 0o755


@pytest.mark.parametrize(("mode", "collector", "is_well"), [
    (0o755, "1000:1000", True), (0o777, "10001:10001", True), (0o1777, "10001:10001", True),
    (0o2775, "10001:1001", True), (0o755, "10001:1001", False), (0o775, "10001:10001", False),
    (0o766, "10001:10001", False), (0o755, "0:0", False)])  # fmt: skip
def test_a_folder_that_the_collector_can_write_to_is_well(mode: int, collector: str, is_well: bool) -> None:
    assert (folder_problem(owned(1000, 1001, mode), "/data", collector) == "") == is_well


def test_the_job_knows_what_the_host_calls_the_folder_and_who_the_collector_is() -> None:
    service, collector = SERVICES["journal"], SERVICES["collector"]
    assert service["environment"]["TRAINVITALS_USER"] == collector["user"]
    assert service["volumes"] == [f"{service['environment']['TRAINVITALS_DIR']}:{service['command'][0]}"]
    assert service["entrypoint"] == ["python", "-m", "trainvitals.stack", "journal"]


def test_grafana_s_password_is_made_once_and_for_its_user_alone(tmp_path: Path) -> None:
    first = job("password", str(tmp_path))
    assert (first.returncode, first.stdout) == (0, "")
    (path,) = tmp_path.iterdir()
    assert path.stat().st_mode & 0o777 == 0o400
    shown = job("password", str(tmp_path), "--show").stdout.strip()
    assert shown == path.read_text() != ""
    assert len(shown) >= 24
    assert str(path) == SERVICES["grafana"]["environment"]["GF_SECURITY_ADMIN_PASSWORD__FILE"].replace(
        "/run/grafana-password", str(tmp_path))  # fmt: skip


def test_a_start_that_was_cut_short_leaves_no_empty_password(tmp_path: Path) -> None:
    (tmp_path / ".password").touch()
    assert len(job("password", str(tmp_path), "--show").stdout.strip()) >= 24


def test_an_agent_that_answers_is_well_and_one_that_does_not_is_not(tmp_path: Path) -> None:
    with serving(tmp_path, "--simulate", "1") as agent:
        port = int(agent.address.rpartition(":")[2])
        assert problem({}, port) == ""
    assert "does not answer" in problem({}, port)


def test_a_gpu_that_is_missing_is_no_trouble_of_the_container(tmp_path: Path) -> None:
    with serving(tmp_path, "--simulate", "2", "--expected-gpus", "3") as agent:
        wait_for(lambda: agent.snapshot()["problems"])
        assert problem({}, int(agent.address.rpartition(":")[2])) == ""
