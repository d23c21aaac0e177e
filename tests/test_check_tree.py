"""scripts/check-tree on small trees of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "check-tree"


@pytest.fixture
def check(tmp_path):
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)

    def check(name, text):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        done = subprocess.run([sys.executable, SCRIPT, tmp_path], capture_output=True, text=True, check=False)
        assert not done.stderr
        return done.returncode, done.stdout

    return check


def function(lines):
    return "def long():\n" + "    '''Docstring.'''\n" + "    x = 1\n" * lines


# A tilde breaks what the check of this repository would find here.
@pytest.mark.parametrize(
    "line",
    [
        "cd /w~ork/main",
        "PATH=/r~oot/bin",
        'url = "https://p~ypi.org/simple"',
        "URIs: http://deb.d~ebian.org/debian",
        "file:///opt/p~ypi/simple",
    ],
)
def test_names_file_line_and_what_it_found(check, line):
    status, output = check("docs/setup.md", "fine\n" + line.replace("~", "") + "\n")

    assert status == 1
    assert output.startswith("docs/setup.md:2: ")


@pytest.mark.parametrize("line", ["src/w~ork/file", "$HOME/w~ork/", "${DIR}/w~ork/", "/var/lib/x", "debian.org"])
def test_leaves_other_paths_and_hosts_alone(check, line):
    assert check("README.md", line.replace("~", "")) == (0, "check-tree: nothing found\n")


def test_a_finding_of_shellcheck_is_passed_over_with_a_reason_alone(check):
    bare = "# shellcheck disable=SC2086,SC2046"
    assert check("a", f"{bare}\n") == (1, f"a:1: {bare}: say why, after a second #\n")
    assert check("a", f"    {bare}\n")[0] == check("a", f"{bare} # it\n")[0] == 1
    assert check("a", f"  {bare}  # each knob is a word\n") == (0, "check-tree: nothing found\n")


def test_ignored_files_are_not_read(check):
    check(".gitignore", ".venv/\n")

    assert check(".venv/pip.conf", "/w~ork/".replace("~", ""))[0] == 0


def test_binary_file_is_no_trouble(check):
    assert check("docs/page.png", b"\x89PNG\xff\xfe\x00")[0] == 0


@pytest.mark.parametrize(("lines", "status"), [(300, 0), (301, 1)])
def test_length_of_a_source_file(check, lines, status):
    assert check("collector/src/trainvitals/a.py", "x = 1\n" * lines)[0] == status


@pytest.mark.parametrize(("lines", "status"), [(50, 0), (51, 1)])
def test_length_of_a_function_without_its_docstring(check, lines, status):
    found, output = check("collector/src/trainvitals/a.py", function(lines))

    assert found == status
    assert not status or "a.py:1: function long has 51 lines" in output


def test_other_python_may_be_longer(check):
    assert check("tests/test_all.py", "x = 1\n" * 400)[0] == 0


def test_this_repository_passes():
    root = SCRIPT.parents[1]
    done = subprocess.run([sys.executable, SCRIPT, root], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout
