"""The job that makes Alertmanager's configuration of .env, as its container runs it."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

LINES = "PAGERDUTY_KEY='hush4hush4hush4hush4'\nTRAINVITALS_DIR=${HOME}/x\nGRAFANA_URL=http://gpu1:3000\n"
WAYS = "alerts go to the collector and by pagerduty\n"


@pytest.fixture
def folder() -> Iterator[Path]:
    """One that others may enter too, as pytest's own is not where root runs it."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name)
        path.chmod(0o755)
        (path / "out").mkdir(mode=0o750)
        yield path


def made(folder: Path, text: str = LINES, **environ: str) -> "subprocess.CompletedProcess[str]":
    env = folder / ".env"
    if not env.exists():
        env.write_text(text)
        env.chmod(0o600)
    # yaml beforehand: who the job becomes need not be allowed to read where this interpreter lies.
    run = "import sys, yaml; from trainvitals.stack.__main__ import main; sys.exit(main())"
    words = [sys.executable, "-c", run, "alertmanager-config", str(env), "--out", str(folder / "out")]
    return subprocess.run(words, capture_output=True, text=True, timeout=30, check=False, env={**os.environ, **environ})


@pytest.mark.skipif(os.geteuid() != 0, reason="acting as another user needs root")
def test_a_file_that_its_owner_alone_may_read_becomes_files_that_alertmanager_alone_may(folder: Path) -> None:
    os.chown(folder / "out", 65534, 65534)
    (folder / ".env").write_text(LINES)
    (folder / ".env").chmod(0o600)
    os.chown(folder / ".env", 1000, 1000)
    done = made(folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith(WAYS)
    secret = folder / "out" / "secrets" / "pagerduty"
    assert secret.read_text() == "hush4hush4hush4hush4"
    assert (secret.stat().st_uid, secret.stat().st_mode & 0o777) == (65534, 0o400)
    assert {path.stat().st_uid for path in (folder / "out").rglob("*")} == {65534}


def test_channels_come_from_the_file_alone_and_links_from_the_environment_first(folder: Path) -> None:
    done = made(folder, PAGERDUTY_KEY="another4another4another4", SMTP_HOST="mail", GRAFANA_URL="http://gpu2:3000",
                PROMETHEUS_URL="")  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert (folder / "out" / "secrets" / "pagerduty").read_text() == "hush4hush4hush4hush4"
    (template,) = (folder / "out" / "templates").iterdir()
    assert "http://gpu2:3000" in template.read_text()
    assert "http://gpu1:3000" not in template.read_text()


@pytest.mark.parametrize(("line", "told"), [
    ("PAGERDUTY_KEY=hush", "PAGERDUTY_KEY: '(not shown)' cannot be used: "),
    ('SMTP_PASSWORD="hush#b$HOME"', ".env: SMTP_PASSWORD: its value holds a $ that Compose reads otherwise: "),
    ("SMTP_PASSWORD='hush", "line 1: '(not shown)' cannot be used: ")])  # fmt: skip
def test_what_cannot_be_used_is_told_in_a_line_and_changes_nothing(line: str, told: str, folder: Path) -> None:
    done = made(folder, line)
    assert done.returncode == 2
    assert told in done.stderr
    assert done.stderr.count("\n") == 1
    assert "hush" not in done.stderr
    assert list((folder / "out").iterdir()) == []


def test_a_folder_that_is_not_there_is_named(folder: Path) -> None:
    (folder / "out").rmdir()
    done = made(folder)
    assert done.returncode == 2
    assert done.stderr == f"--out: {str(folder / 'out')!r} cannot be used: name a folder that is there\n"
