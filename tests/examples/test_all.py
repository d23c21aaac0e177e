"""What holds for every example in the folder."""

import ast
import re

from tests.examples.support import COLLECTOR, ended, needed

FILES = sorted((COLLECTOR / "examples").glob("*.py"))
USED = ("torch", "transformers", "accelerate", "peft")
# Without words it would show GPUs.
WORDS = {"monitor_training_example.py": ("--mode", "train", "--steps", "5")}


def test_help_says_how_each_is_run(example):
    needed(*USED)
    asked = {file: example.start(file.name, "--help") for file in FILES}
    for file, process in asked.items():
        out, _ = ended(process)
        assert f"python {file.name}" in out, file.name


def test_each_goes_on_to_its_end_where_nothing_is_recorded(example):
    needed(*USED)
    example.environ["TRAINVITALS"] = "off"
    running = {file: example.start(file.name, *WORDS.get(file.name, ())) for file in FILES}
    for file, process in running.items():
        out, errors = ended(process)
        assert "nothing was recorded" in out and "Traceback" not in errors, f"{file.name}: {errors}"
    assert not list(example.root.glob("runs/*/*"))


def test_the_table_of_examples_names_each_and_no_other():
    table = (COLLECTOR.parent / "docs/examples.md").read_text()
    assert sorted(re.findall(r"^\| \[(\w+\.py)\]", table, re.MULTILINE)) == [file.name for file in FILES]


def test_each_opens_with_what_it_is_and_needs_nothing_from_its_neighbours():
    names = {file.stem for file in FILES}
    for file in FILES:
        tree = ast.parse(file.read_text())
        assert "\n\n    python " in ast.get_docstring(tree, clean=False), file.name
        imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        assert not imported & names, file.name
