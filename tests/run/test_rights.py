"""Who may read what a run writes, and a run whose process becomes another user."""

import os
from pathlib import Path

import pytest

from tests.run.support import events, losses, python, run_folders, run_json

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user needs root")


def modes(run: Path) -> set[str]:
    return {oct(path.stat().st_mode & 0o777) for path in (run, *run.iterdir()) if path.name != "agent"}


@pytest.mark.parametrize(
    ("umask", "expected"), [(0o022, {"0o755", "0o644"}), (0o077, {"0o700", "0o600"})], ids=["022", "077"]
)
def test_a_runs_files_are_as_private_as_its_umask_says_and_hold_everything(
    tmp_path: Path, umask: int, expected: set[str]
) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs").chmod(0o1777)
    script = "import os, sys; os.umask(int(sys.argv[1])); import trainvitals as tv; run = tv.start('private')\n"
    done = python(script + "run.log(loss=1.0); run.event('here'); run.finish()", umask, journal=tmp_path)
    (run,) = run_folders(tmp_path)
    assert (done.returncode, modes(run)) == (0, expected)
    assert losses(run) == {1: 1.0} and len(events(run)) == 2 and run_json(run)["status"] == "finished"


@as_root
def test_a_process_that_gives_up_root_goes_on_logging_and_can_open_nothing_more(tmp_path: Path) -> None:
    script = """
import os
import trainvitals as tv
run = tv.start("daemon")
run.log(loss=1.0)
os.setgid(65534)
os.setuid(65534)
run.log(loss=2.0)
run.event("no file yet")
run.finish()
print(run.dropped > 0)
"""
    done = python(script, journal=tmp_path)
    assert (done.stdout, done.returncode) == ("True\n", 0)
    (warning,) = [line for line in done.stderr.splitlines() if "took over 20 ms" not in line]
    assert warning.endswith("Permission denied; records are dropped until that ends")
    (run,) = run_folders(tmp_path)
    assert losses(run) == {1: 1.0, 2: 2.0} and run_json(run)["status"] == "running"
