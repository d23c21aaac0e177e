"""Which packages come and go with an engine that is replaced, and that its containers come back."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.ansible import local
from tests.stack.bases import ROOT

FILES = ROOT / "ansible" / "roles" / "docker" / "files"
OLD = {"release": "debian-13", "codename": "trixie", "engine": "20.10.24", "compose": "2.20", "buildx": "0.13",
       "package": "docker.io", "snap": False, "unit": True, "containerd": None,
       "containerd_package": "containerd"}  # fmt: skip
SHOWN = "{'goes': docker_packages_unwanted, 'comes': docker_packages_wanted, 'why': docker_problems}"


def judged(folder: Path, *, found: dict[str, Any], **variables: Any) -> dict[str, Any]:
    done = local.played(folder, [*local.variables("docker"), local.shown(SHOWN, folder / "told")],
                        docker_found={**OLD, **found}, docker_replace=True, **variables)  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]
    told: dict[str, Any] = json.loads((folder / "told").read_text())
    return told


@pytest.mark.parametrize(("package", "source", "gone", "comes"), [
    ("docker.io", "docker", "containerd", "containerd.io"), ("docker-ce", "distribution", "containerd.io", "docker.io"),
    ("docker-ce", "docker", "", "docker-ce"), ("docker.io", "distribution", "", "docker.io")])  # fmt: skip
def test_what_does_not_go_with_the_other_goes(tmp_path: Path, package: str, source: str, gone: str, comes: str) -> None:
    told = judged(tmp_path, found={"package": package}, docker_source=source)
    assert told["why"] == []
    assert comes in told["comes"]
    assert gone in told["goes"] if gone else told["goes"] == []
    assert not set(told["goes"]) & set(told["comes"])


@pytest.mark.parametrize(("package", "comes"), [
    ("docker-ce", ["docker-compose-plugin", "docker-buildx-plugin"]),
    ("docker.io", ["docker-compose", "docker-buildx"])])  # fmt: skip
def test_an_engine_that_fits_gets_compose_alone(tmp_path: Path, package: str, comes: list[str]) -> None:
    told = judged(tmp_path, found={"engine": "28.5", "compose": "", "package": package})
    assert (told["goes"], told["comes"]) == ([], comes)


def test_an_engine_that_fits_gets_what_builds_images(tmp_path: Path) -> None:
    told = judged(tmp_path, found={"engine": "28.5", "buildx": "", "package": "docker-ce"})
    assert "docker-buildx-plugin" in told["comes"]
    assert (told["goes"], told["why"]) == ([], [])


@pytest.mark.parametrize(("source", "problems"), [("build", 1), ("keep", 0)])
def test_one_installed_by_hand_without_buildx_is_told_where_it_is_to_build(
    tmp_path: Path, source: str, problems: int
) -> None:
    why = judged(tmp_path, found={"engine": "28.5", "buildx": "", "package": ""}, stack_image_source=source)["why"]
    assert len(why) == problems
    assert all("has no buildx" in one and "put docker-buildx into /usr/local/lib/docker" in one for one in why)


def test_an_engine_beside_which_there_is_no_compose_is_told(tmp_path: Path) -> None:
    found = {"engine": "26.1", "compose": "", "release": "debian-12"}
    (why,) = judged(tmp_path, found=found, docker_source="distribution")["why"]
    assert "its Compose is missing, where 2.20 is needed, and debian-12 has none beside docker.io" in why


def test_an_engine_installed_by_hand_is_not_replaced(tmp_path: Path) -> None:
    (why,) = judged(tmp_path, found={"package": ""})["why"]
    assert "was installed by hand, so that no package manager can replace it" in why


@pytest.mark.parametrize("engine", ["20.10.24", ""])
def test_another_s_containers_keep_their_containerd(tmp_path: Path, engine: str) -> None:
    found = {"engine": engine, "package": "docker.io" if engine else "", "containerd": ["k8s.io", "moby"]}
    (why,) = judged(tmp_path, found=found)["why"]
    assert "its containerd runs containers of k8s.io too" in why
    assert "docker_source: distribution" in why


def test_an_engine_that_fits_may_have_company(tmp_path: Path) -> None:
    assert judged(tmp_path, found={"engine": "28.5", "containerd": ["k8s.io"]})["why"] == []


# Containers are files: what stands in one is how it is.
DOCKER = """
cd {0}/containers
case $1 in
info) exit 0 ;;
ps) for one in $(ls -r); do ! grep -q running $one || echo $one; done ;;
stop) shift 3; for one; do echo stopped >$one; done; [ ! -e {0}/broken ] ;;
inspect) [ -e $4 ] && echo /$4 ;;
start) [ -e $2 ] && ! grep -q spoilt $2 && echo running >$2 ;;
esac"""


def machine(folder: Path) -> dict[str, str]:
    (folder / "containers").mkdir()
    for name, state in (("a", "running"), ("b", "exited"), ("c", "running")):
        (folder / "containers" / name).write_text(state)
    path = local.program(folder / "bin", "docker", DOCKER.format(folder))
    local.program(path, "systemctl", f"echo $* >>{folder}/units")
    return {"PATH": f"{path}:/usr/bin:/bin"}


def run(folder: Path, name: str, environ: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    words = [FILES / f"{name}.sh", folder / "ran"]
    return subprocess.run(words, check=False, capture_output=True, text=True, timeout=60, env=environ)


def states(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text().strip() for path in (folder / "containers").iterdir()}


def test_what_ran_runs_again_and_nothing_else(tmp_path: Path) -> None:
    environ = machine(tmp_path)
    assert run(tmp_path, "stop", environ).returncode == 0
    assert states(tmp_path) == {"a": "stopped", "b": "exited", "c": "stopped"}
    stopped = [line for line in (tmp_path / "units").read_text().splitlines() if line.startswith("stop")]
    assert stopped == ["stop docker.socket", "stop docker.service", "stop containerd.service"]
    assert run(tmp_path, "start", environ).returncode == 0
    assert states(tmp_path) == {"a": "running", "b": "exited", "c": "running"}
    assert not (tmp_path / "ran").exists()


def test_a_run_that_was_broken_off_forgets_none(tmp_path: Path) -> None:
    environ = machine(tmp_path)
    (tmp_path / "broken").touch()
    assert run(tmp_path, "stop", environ).returncode != 0
    (tmp_path / "broken").unlink()
    assert run(tmp_path, "stop", environ).returncode == 0
    run(tmp_path, "start", environ)
    assert states(tmp_path) == {"a": "running", "b": "exited", "c": "running"}


def test_one_that_does_not_start_is_named_and_one_that_is_gone_is_not(tmp_path: Path) -> None:
    environ = machine(tmp_path)
    run(tmp_path, "stop", environ)
    (tmp_path / "containers" / "a").write_text("spoilt")
    with (tmp_path / "ran").open("a") as file:
        file.write("never\n")
    done = run(tmp_path, "start", environ)
    assert (done.returncode, done.stderr) == (1, "these ran before and do not start: a: docker logs says why\n")
    assert states(tmp_path)["c"] == "running"
