"""Two releases are kept on a machine, and of images what these name."""

import subprocess
from pathlib import Path

from tests.ansible import local
from tests.stack.bases import ROOT

SCRIPT = ROOT / "ansible" / "roles" / "stack" / "files" / "apply.sh"
# Each release names node-exporter of its own version, and Caddy all the same.
COMPOSE = "services:\n  node:\n    image: prom/node-exporter:v{0}\n  caddy:\n    image: caddy:2\n"
DOCKER = """echo "$@" >>{0}/asked
case "$*" in
*trainvitals.source=*) echo sha256:1 ;;
"rmi prom/node-exporter:v0") echo in use >&2; exit 1 ;;
esac"""


def applied(folder: Path, *, release: str, healthy: str) -> list[str]:
    """Of what Docker was asked to remove."""
    home = folder / "home"
    for number in "0123":
        compose = home / "releases" / f"r{number}" / "compose"
        compose.mkdir(parents=True)
        (compose / "compose.yaml").write_text(COMPOSE.format(number))
        (compose.parent / ".source").write_text(f"{number}\n")
    (home / "healthy").symlink_to(f"releases/{healthy}")
    path = local.program(folder / "bin", "docker", DOCKER.format(folder))
    done = subprocess.run([SCRIPT, home, release, "5"], check=False, capture_output=True, text=True, timeout=60,
                          env={"PATH": f"{path}:/usr/bin:/bin"})  # fmt: skip
    assert done.returncode == 0, done.stderr
    asked = (folder / "asked").read_text().splitlines()
    return [line for line in asked if line.startswith("rmi ")]


def test_images_that_only_older_releases_named_go_with_these_and_one_in_use_stays(tmp_path: Path) -> None:
    assert applied(tmp_path, release="r3", healthy="r2") == ["rmi prom/node-exporter:v0", "rmi prom/node-exporter:v1"]
    assert sorted(path.name for path in (tmp_path / "home" / "releases").iterdir()) == ["r2", "r3"]


def test_a_run_that_brings_nothing_new_removes_nothing(tmp_path: Path) -> None:
    assert applied(tmp_path, release="r3", healthy="r3") == []
