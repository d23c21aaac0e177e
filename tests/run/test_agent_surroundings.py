"""An agent with the run, where the program has no stderr, runs beside files of unlucky names, or changes its user."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.collector.support import wait_for
from tests.run.support import environment
from tests.run.test_agent import agents

PROGRAM = """
import os, sys, time
from pathlib import Path
import trainvitals as tv
data = open("data", "w+b", buffering=0)
data.write(b"mine")
run = tv.start("x", agent=True)
run.log(loss=1.0)
for _ in range(1000):
    if list(Path(os.environ["TRAINVITALS_DIR"]).glob("gpu/*/host_metrics_*")):
        break
    time.sleep(0.02)
else:
    sys.exit("no agent came")
{rest}
run.finish()
data.seek(0)
print(data.fileno(), data.read())
"""
SAYS_SOMETHING = "import os, sys\nif 'serve' in sys.orig_argv: os.write(2, b'a warning')\n"
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user needs root")


def trained(folder: Path, rest: str = "", redirect: str = "", **more: str) -> "subprocess.CompletedProcess[str]":
    """A script run in another folder than its own."""
    (folder / "train.py").write_text(PROGRAM.format(rest=rest))
    (folder / "data").mkdir(exist_ok=True)
    words = ["sh", "-c", f'exec "$0" "$1" {redirect}', sys.executable, str(folder / "train.py")]
    done = subprocess.run(words, cwd=folder / "data", capture_output=True, text=True, timeout=60, check=False,
                          env=environment(folder / "journal", **more))  # fmt: skip
    wait_for(lambda: not agents(folder / "journal"))
    return done


def test_a_program_without_stderr_has_its_own_words_alone_in_its_files(tmp_path: Path) -> None:
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "sitecustomize.py").write_text(SAYS_SOMETHING)
    path = f"{tmp_path / 'hidden'}:{environment()['PYTHONPATH']}"
    done = trained(tmp_path, redirect="2>&-", PYTHONPATH=path)
    assert (done.stdout, done.returncode) == ("2 b'mine'\n", 0)


@pytest.mark.parametrize("name", ["logging.py", "starlette.py", "trainvitals.py"])
def test_what_lies_where_the_program_runs_is_no_part_of_the_agent(tmp_path: Path, name: str) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / name).write_text("raise RuntimeError('not meant for you')")
    done = trained(tmp_path)
    assert done.returncode == 0 and "not meant" not in done.stderr


@as_root
def test_a_program_that_gives_up_its_rights_ends_as_it_would_have(tmp_path: Path) -> None:
    done = trained(tmp_path, "os.setgid(65534); os.setuid(65534); run.log(loss=2.0)")
    assert done.returncode == 0 and "failed" not in done.stderr
