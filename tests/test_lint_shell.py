"""scripts/lint-shell on small trees of its own."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "lint-shell"
GOOD = "#!/bin/sh\necho well\n"


@pytest.fixture
def lint(tmp_path):
    def lint(template, **environ):
        for name, text in {
            ".ci/run": GOOD,
            "ansible/roles/a/files/b.sh": GOOD,
            "ansible/roles/a/templates/c.sh.j2": template,
        }.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        (tmp_path / "scripts").mkdir()
        shutil.copy(SCRIPT, tmp_path / "scripts")
        words = [shutil.which("bash"), tmp_path / "scripts" / "lint-shell"]
        return subprocess.run(words, capture_output=True, text=True, check=False, env={**os.environ, **environ})

    return lint


needs_shellcheck = pytest.mark.skipif(not shutil.which("shellcheck"), reason="no shellcheck here")


@needs_shellcheck
def test_a_template_is_checked_as_it_is_filled_in(lint):
    done = lint('{# A remark. #}\na={{ it | quote }}\n{% if b %}\necho "$a" $(({{ number }} + 1))\n{% endif %}\n')
    assert (done.returncode, done.stdout) == (0, "")


@needs_shellcheck
def test_a_finding_names_the_template(lint):
    done = lint('a={{ it | quote }}\nrm -r $a "$1"\n')
    assert done.returncode == 1
    assert "SC2086" in done.stdout and "lint: - is ansible/roles/a/templates/c.sh.j2" in done.stdout


@pytest.mark.parametrize(("ci", "status"), [("", 0), ("true", 1)])
def test_without_shellcheck_it_says_so_and_fails_where_nobody_reads_it(lint, tmp_path, ci, status):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "dirname").symlink_to(shutil.which("dirname"))
    done = lint("", CI=ci, PATH=str(tmp_path / "bin"))
    assert done.returncode == status
    assert "shellcheck is not installed" in done.stderr
