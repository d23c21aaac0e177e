"""What the commands say before anything is done: which cloud, what is missing, how one goes on."""

import argparse
import io
import json
import os
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from deploy import kept
from deploy.__main__ import _machines, main
from deploy.cloud import CLOUDS, ROOT, Cloud
from deploy.errors import DeployError, FileToEdit
from tests.deploy import clones
from tests.deploy.conftest import Program
from tests.deploy.test_say import Terminal


def told(*words: str, **environ: str) -> str:
    done = subprocess.run([sys.executable, "-m", "deploy", *words], cwd=ROOT, check=False, capture_output=True,
                          text=True, timeout=120, stdin=subprocess.DEVNULL, env=os.environ | environ)  # fmt: skip
    assert done.returncode == 2, done
    return done.stderr


@pytest.mark.parametrize(("words", "wanted"), [
    (["deploy"], "say which: make deploy CLOUD=gcp or CLOUD=aws, or INVENTORY=hosts.yml\n"),
    (["plan"], "say which: make plan CLOUD=gcp or CLOUD=aws\n"),
    (["destroy"], "say which: make destroy CLOUD=gcp or CLOUD=aws\n"),
    (["plan", "--inventory", "hosts.yml"], "nothing to plan; make deploy INVENTORY=hosts.yml sets them up\n"),
    (["verify", "--cloud", "gcp", "--inventory", "hosts.yml"], "say which: make verify"),
    (["plan", "--cloud", "azure"], "CLOUD: 'azure' is none that there is a module for: take gcp or aws"),
    (["deploy", "--inventory", "nosuch.yml"], "INVENTORY: there is no file nosuch.yml"),
    (["destroy", "--inventory", "hosts.yml"], "-i hosts.yml ansible/remove.yml takes the stack off them"),
])  # fmt: skip
def test_a_call_that_is_off_is_told_with_the_fix(words: list[str], wanted: str) -> None:
    assert wanted in told(*words)


def test_a_name_may_hold_what_a_shell_would_read(tmp_path: Path) -> None:
    clones.bare(tmp_path)
    words = clones.make("verify", "INVENTORY=o'n $$(nosuch).yml", "CLOUD=")
    done = subprocess.run(words, cwd=tmp_path, check=False, capture_output=True, text=True, timeout=120)
    assert "INVENTORY: there is no file o'n $(nosuch).yml;" in done.stderr


@pytest.mark.parametrize("value", ["soon", "0", "-5", "7201", "1.5"])
def test_a_wait_that_is_none_is_told_before_anything_is_made(value: str) -> None:
    wanted = f"REACH_SECONDS: '{value}' is no whole number from 1 to 7200"
    assert wanted in told("deploy", "--cloud", "aws", REACH_SECONDS=value)


@pytest.mark.parametrize(("text", "wanted"), [
    ("", "the group monitoring has no host"),
    ("all: {hosts: {a: }}\n", "a is in no group: put it into gpu_nodes, or monitoring"),
    ("monitoring: [\n", "is no inventory"),
])  # fmt: skip
@pytest.mark.parametrize("action", ["deploy", "verify", "tunnel"])
def test_an_inventory_that_is_none_is_told_whatever_is_wanted_of_it(
    tmp_path: Path, action: str, text: str, wanted: str
) -> None:
    (tmp_path / "hosts.yml").write_text(text)
    assert wanted in told(action, "--inventory", str(tmp_path / "hosts.yml"))


@pytest.mark.parametrize("action", ["plan", "deploy", "destroy"])
def test_no_two_commands_work_on_one_site(action: str) -> None:
    with kept.alone("gcp"):
        words = told(action, "--cloud", "gcp")
    assert f"another command is at work on gcp (process {os.getpid()}): wait until it has ended" in words


@pytest.mark.parametrize(("beforehand", "stdin", "wanted"), [
    ("", Terminal(), 0), ("1", Terminal(), 2), ("", io.StringIO(), 2)])  # fmt: skip
def test_the_first_run_names_the_file_and_ends_well_where_somebody_reads_that(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    beforehand: str,
    stdin: io.StringIO,
    wanted: int,
) -> None:
    def first(*_: object, **__: object) -> None:
        raise FileToEdit("wrote it, the one file to edit")

    monkeypatch.setattr(sys, "argv", ["deploy", "plan", "--cloud", "gcp"])
    monkeypatch.setattr(Cloud, "check", first)
    monkeypatch.setattr(sys, "stdin", stdin)
    monkeypatch.setenv("YES", beforehand)
    assert main() == wanted
    assert capsys.readouterr().out == "deploy: wrote it, the one file to edit\n"


def test_an_answer_that_cannot_be_read_is_told_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["deploy", "plan", "--cloud", "gcp"])
    monkeypatch.setattr(Cloud, "check", lambda *_, **__: json.loads("half"))
    assert main() == 2
    assert "deploy: an answer could not be read (Expecting value: " in capsys.readouterr().err


def test_a_mistyped_inventory_leaves_no_lock_behind() -> None:
    told("deploy", "--inventory", "mistyped.yml")
    assert not (kept.KEPT / "mistyped.yml.lock").exists()


@pytest.mark.parametrize("name", [
    "hosts.yml", "ansible/inventory/gcp.yml", "ansible/inventory/group_vars/gcp.yml",
    "ansible/inventory/host_vars/trainvitals-gpu-1.yml",
])  # fmt: skip
def test_an_inventory_where_the_docs_put_it_is_not_committed(name: str) -> None:
    asked = ["git", "check-ignore", "-q", name]
    if not (ROOT / ".git").exists():
        pytest.skip("no git here")
    assert subprocess.run(asked, cwd=ROOT, check=False).returncode == 0


def test_a_site_has_one_lock_whatever_path_it_is_called_by(tmp_path: Path) -> None:
    (tmp_path / "hosts.yml").touch()
    (tmp_path / "same.yml").symlink_to("hosts.yml")
    assert kept.name_of("", str(tmp_path / "same.yml")) == kept.name_of("", str(tmp_path / "hosts.yml"))
    assert kept.name_of("", str(ROOT / "ansible" / "inventory" / "gcp.yml")) == kept.name_of("gcp", "") == "gcp"


def test_a_lock_ends_with_its_holder() -> None:
    for _ in range(2):
        with kept.alone("gcp"):
            pass


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc here")
def test_a_process_that_nobody_asked_how_it_ended_holds_no_lock() -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        assert kept._lives(process.pid)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert not kept._lives(process.pid)


def some_cloud(folder: Path) -> Cloud:
    return Cloud("gcp", folder, "x", "x", {"needed": "https://example.com/install"}, {}, CLOUDS["gcp"].full,
                 CLOUDS["gcp"].absent, "log in")  # fmt: skip


def test_a_program_that_is_missing_is_told_with_where_it_is(tmp_path: Path) -> None:
    with pytest.raises(DeployError, match=r"needed is not installed: https://example.com/install"):
        some_cloud(tmp_path).check(new=True)


@pytest.mark.parametrize("script", ["true", "echo ada@example.com; exit 1"])
def test_who_is_not_logged_in_to_gcloud_is_told_before_machines_are_made(
    program: Program, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    monkeypatch.delenv("CLOUDSDK_AUTH_ACCESS_TOKEN", raising=False)
    program("gcloud", script)
    with pytest.raises(DeployError, match=r"gcloud auth login; .* gcloud auth application-default login"):
        CLOUDS["gcp"].need_account()


def test_who_is_logged_in_goes_on(program: Program) -> None:
    program("gcloud", 'test "$*" = "auth list --filter=status:ACTIVE --format=value(account)" && echo ada@example.com')
    CLOUDS["gcp"].need_account()


@pytest.mark.parametrize(("action", "wanted"), [("plan", 1), ("deploy", 1), ("verify", 1), ("destroy", 0)])
def test_it_is_asked_by_what_needs_ssh_and_not_where_money_is_saved(
    tmp_path: Path, program: Program, monkeypatch: pytest.MonkeyPatch, action: str, wanted: int
) -> None:
    program("needed", "true")
    program("gcloud", "exit 1")
    (tmp_path / "terraform.tfvars").touch()
    monkeypatch.setitem(CLOUDS, "gcp", replace(some_cloud(tmp_path), account=CLOUDS["gcp"].account))
    asked = argparse.Namespace(cloud="gcp", action=action)
    with pytest.raises(DeployError, match="logged in as nobody") if wanted else nullcontext():
        _machines(asked)


def test_the_one_file_to_edit_is_written_and_named(tmp_path: Path, program: Program) -> None:
    program("needed", "true")
    (tmp_path / "terraform.tfvars.example").write_text('name = "x"\n')
    with pytest.raises(FileToEdit, match=r"wrote .*terraform.tfvars, the one file to edit: say there what to make"):
        some_cloud(tmp_path).check(new=True)
    assert (tmp_path / "terraform.tfvars").read_text() == 'name = "x"\n'
    some_cloud(tmp_path).check(new=False)


@pytest.mark.parametrize("variable", ["EDITOR", "VISUAL"])
@pytest.mark.parametrize(
    ("typed", "is_done"), [("echo 'name = \"mine\"' >", True), ("true", False), ("exit 3;", False)]
)
def test_at_a_terminal_it_is_opened_and_the_run_goes_on_when_it_was_changed(
    tmp_path: Path, program: Program, monkeypatch: pytest.MonkeyPatch, variable: str, typed: str, is_done: bool
) -> None:
    program("needed", "true")
    program("editor", f'{typed} "$2"')
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv(variable, "editor --wait")
    for stream in (sys.stdin, sys.stdout):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    (tmp_path / "terraform.tfvars.example").write_text('name = "x"\n')
    with nullcontext() if is_done else pytest.raises(FileToEdit):
        some_cloud(tmp_path).check(new=True)
    assert (tmp_path / "terraform.tfvars").read_text() == ('name = "mine"\n' if is_done else 'name = "x"\n')


@pytest.mark.parametrize(("cloud", "words"), [
    ("gcp", "Error waiting for instance to create: The zone 'us-central1-a' does not have enough resources available"),
    ("gcp", "A g2-standard-4 VM instance is currently unavailable in the us-central1-a zone."),
    ("gcp", "googleapi: Error 503: ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS"),
    ("aws", "api error InsufficientInstanceCapacity: We currently do not have sufficient p4d.24xlarge capacity"),
])  # fmt: skip
def test_it_knows_how_a_cloud_says_that_a_zone_is_full(cloud: str, words: str) -> None:
    refusal = CLOUDS[cloud].refusal(words)
    assert refusal and not CLOUDS[cloud].absent.search(refusal)


@pytest.mark.parametrize(("cloud", "words"), [
    ("gcp", "Machine type with name 'a2-highgpu-1g' does not\nexist in zone 'us-central1-d'."),
    ("gcp", "The resource 'projects/p/zones/us-central1-d/machineTypes/a2-highgpu-1g' was not\nfound, notFound"),
    ("aws", "Your instance type (p5.48xlarge) is not supported in your requested Availability Zone (us-east-1e)."),
])  # fmt: skip
def test_and_how_that_a_zone_never_has_such_a_machine(cloud: str, words: str) -> None:
    refusal = CLOUDS[cloud].refusal(words)
    assert CLOUDS[cloud].absent.search(refusal) and any(name in refusal for name in ("a2-highgpu-1g", "p5.48xlarge"))


@pytest.mark.parametrize(
    "words",
    [
        "Error 403: Required 'compute.instances.create' permission",
        "Quota 'GPUS_ALL_REGIONS' exceeded",
        "The resource 'projects/p/global/images/mine' was not found",
    ],
)
def test_another_error_is_no_full_zone(words: str) -> None:
    assert not any(cloud.refusal(words) for cloud in CLOUDS.values())


def test_a_state_that_could_not_be_written_is_brought_back_first(tmp_path: Path, program: Program) -> None:
    program("needed", "true")
    (tmp_path / "errored.tfstate").write_text("{}")
    with pytest.raises(DeployError, match=r"errored.tfstate: .*terraform -chdir=\S+ state push errored.tfstate"):
        some_cloud(tmp_path).check(new=True)


def test_a_cloud_that_was_never_deployed_to_is_told_as_that(tmp_path: Path, program: Program) -> None:
    program("needed", "true")
    with pytest.raises(DeployError, match=r"terraform.tfvars is missing: nothing was made from this clone"):
        some_cloud(tmp_path).check(new=False)
    assert list(tmp_path.iterdir()) == [tmp_path / "bin"]
