"""The command line itself: help, version, mistakes, missing parts, and readers that leave early."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import trainvitals
from tests.collector.support import command_line
from trainvitals import cli, config
from trainvitals.cli import EXAMPLES
from trainvitals.errors import install_words

COMMANDS = tuple(filter(None, EXAMPLES))


def outcome(*words: str) -> int:
    try:
        return cli.main(words)
    except SystemExit as end:
        return int(end.code or 0)


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ([], "COMMAND"),
        (["nonsense"], "nonsense"),
        (["--nonsense", "serve"], "--nonsense"),
        (["serve", "--nonsense"], "--nonsense"),
        (["serve", "--nonsense=1"], "--nonsense"),
        (["serve", "word"], "word"),
        (["serve", "--inter", "1"], "--inter"),
        (["serve", "--port"], "--port"),
        (["serve", "--per-core=1"], "--per-core"),
        (["once", "--port", "1"], "--port"),
        (["monitor", "--gpus", "-1,2"], "--gpus"),
    ],
)
def test_a_mistake_is_one_line_that_says_where_to_look(
    words: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert outcome(*words) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert named in err
    assert re.search(r"see `trainvitals( \w+)? --help`$", err)


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert outcome("--version") == 0
    assert capsys.readouterr().out == f"trainvitals {trainvitals.__version__}\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_help_teaches_by_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert outcome(command, "--help") == 0
    out = capsys.readouterr().out
    examples = out.partition("examples:\n")[2]
    assert f"  trainvitals {command}" in examples
    flags = re.findall(r"^  (--[\w-]+)(.*)", out, re.MULTILINE)
    assert len(flags) >= 2


def test_help_spells_names_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    for command, words in (("monitor", "\nGPUs in the terminal"), ("demo", "\nEight simulated GPUs and a run")):
        assert outcome(command, "--help") == 0
        assert words in capsys.readouterr().out


def test_the_first_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert outcome("--help") == 0
    out = capsys.readouterr().out
    assert all(re.search(rf"^    {command}(  |$)", out, re.MULTILINE) for command in COMMANDS)


@pytest.mark.parametrize(
    "line", sorted({line for text in EXAMPLES.values() for line in text.splitlines() if "trainvitals" in line})
)
def test_every_example_is_understood(line: str, tmp_path: Path) -> None:
    words = shlex.split(re.split(r"\s{3,}|\|", line.strip())[0])
    parsed = cli._parse(words[1:])
    if parsed.get("web_config"):
        parsed["web_config"] = __file__
    config.load(parsed, {})


def test_the_package_is_the_command_too_and_names_itself_so() -> None:
    words = [sys.executable, "-m", "trainvitals"]
    assert subprocess.run([*words, "--version"], capture_output=True, text=True, timeout=20,
                          check=True).stdout == f"trainvitals {trainvitals.__version__}\n"  # fmt: skip
    wrong = subprocess.run([*words, "onc"], capture_output=True, text=True, timeout=20, check=False)
    assert wrong.returncode == 2 and wrong.stderr.endswith(" -m trainvitals --help`\n")


def test_what_brings_the_page_is_asked_for_when_it_is_missing(tmp_path: Path) -> None:
    program = "import sys; sys.modules['starlette'] = None; from trainvitals.cli import main; sys.exit(main())"
    for words in (["serve"], ["monitor", "--prometheus-port", "1"]):
        answer = subprocess.run([sys.executable, "-c", program, *words, "--dir", str(tmp_path)],
                                capture_output=True, text=True, timeout=20, check=False)  # fmt: skip
        assert answer.returncode == 2, answer.stderr
        assert answer.stderr.endswith(f"is missing: {install_words('web')}\n")
        assert "Traceback" not in answer.stderr
    assert subprocess.run([sys.executable, "-c", program, "once", "--json"], capture_output=True, timeout=20,
                          check=False).returncode == 0  # fmt: skip


@pytest.mark.parametrize("words", [("once",), ("once", "--json"), ("doctor",), ("--help",)])
def test_a_reader_that_has_left_is_no_error(words: tuple[str, ...], tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    env = {**os.environ, "TRAINVITALS_DIR": str(tmp_path)}
    process = subprocess.run([*command_line(*words)], stdout=writing, stderr=subprocess.PIPE, text=True, env=env,
                             timeout=20, check=False)  # fmt: skip
    os.close(writing)
    assert "Traceback" not in process.stderr
    assert "Exception ignored" not in process.stderr
    assert process.returncode in (0, 1)


@pytest.mark.parametrize("words", [("once", "--simulate", "2"), ("doctor",)])
def test_a_terminal_that_knows_ascii_alone_is_written_to(words: tuple[str, ...], tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONIOENCODING": "ascii", "TRAINVITALS_DIR": str(tmp_path)}
    process = subprocess.run(command_line(*words), capture_output=True, env=env, timeout=20, check=False)
    assert process.stdout
    assert process.stderr == b""
