"""A repository whose key does not come is named with its address, whose it is and the fix, before anything changes."""

import subprocess
from pathlib import Path

import pytest

from tests.ansible import local

OTHERWISE = "; or set docker_source: distribution"
SAID = "mon: the key of Docker's packages does not come from http://127.0.0.1:1/gpg: "


def asked(folder: Path, entry: str, address: str, apt: str = "true") -> "subprocess.CompletedProcess[str]":
    path = local.program(folder / "bin", "apt-get", apt)
    repository = {"name": "no-such", "url": "http://docker.example", "suite": "trixie", "components": "stable",
                  "key_url": address, "fingerprint": "0", "owner": "Docker", "otherwise": OTHERWISE}  # fmt: skip
    return local.played(folder, [local.role("base", entry)], path=path, base_repository=repository)


def test_the_address_whose_it_is_and_the_fix_are_said(tmp_path: Path) -> None:
    done = asked(tmp_path, "apt_reached", "http://127.0.0.1:1/gpg")
    text = " ".join(done.stdout.split()).replace("''", "'")
    assert done.returncode == 2, text
    assert SAID in text and "Connection refused" in text
    assert f"(curl http://127.0.0.1:1/gpg){OTHERWISE}. Nothing was changed there." in text


@pytest.mark.parametrize(("name", "apt"), [
    ("here", "true"), ("no-such", "echo http://docker.example trixie /etc/apt/sources.list:1")])  # fmt: skip
def test_one_that_answers_or_is_there_already_is_none_to_speak_of(tmp_path: Path, name: str, apt: str) -> None:
    (tmp_path / "here").touch()
    done = asked(tmp_path, "apt_reached", f"file://{tmp_path}/{name}", apt)
    assert done.returncode == 0, done.stdout
