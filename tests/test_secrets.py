"""No secret is in the tree: a scan for tokens, keys and passwords, whose false finds allowed_secrets.txt explains."""

import re
import subprocess
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.stack.bases import ROOT

ALLOWED = ROOT / "tests" / "allowed_secrets.txt"
# In halves, so that this file passes the scan.
TOKENS = ("ghp_" + "a1B2c3" * 6, "AKIA" + "J2P7Q4RX" * 2, "xoxb-" + "1234567890-" + "abcd" * 4,
          "-----BEGIN RSA PRIVATE " + "KEY-----")  # fmt: skip


class Allowed(NamedTuple):
    file: str
    kind: str
    why: str


def allowed() -> list[Allowed]:
    lines = [line for line in ALLOWED.read_text().splitlines() if line and not line.startswith("#")]
    return [Allowed(*re.split(r"\s{2,}", line)) for line in lines]


def found(root: Path, *names: str) -> Iterator[tuple[str, str, int]]:
    """File, kind and line."""
    collection = pytest.importorskip("detect_secrets.core.secrets_collection")
    settings = pytest.importorskip("detect_secrets.settings")
    secrets = collection.SecretsCollection(root=str(root))
    with settings.default_settings():
        secrets.scan_files(*names, num_processors=1)
    for name, secret in secrets:
        yield name, secret.type, secret.line_number


def tracked() -> list[str]:
    words = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True)
    return [name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_no_secret_is_in_the_tree() -> None:
    reasons, needed, untold = allowed(), set(), []
    for name, kind, line in found(ROOT, *tracked()):
        fitting = {one for one in reasons if kind == one.kind and fnmatchcase(name, one.file)}
        needed |= fitting
        if not fitting:
            untold.append(f"{name}:{line}: {kind}; take it out, or say in {ALLOWED.name} why it is none")
    assert untold == []
    assert set(reasons) - needed == set(), "nothing needs these lines any more"


@pytest.mark.parametrize("token", TOKENS, ids=lambda token: token[:4])
def test_a_secret_is_found(tmp_path: Path, token: str) -> None:
    (tmp_path / "notes.md").write_text(f"The one for the demo: {token}\n")
    assert [line for _, _, line in found(tmp_path, "notes.md")] == [1]
