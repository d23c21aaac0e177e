"""JSON Schemas made of Grafana's own published types; properties that the types do not name are refused.

They are made once for each lock of schema/ and kept in .cache. Needs Node and npm.
"""

import hashlib
import json
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import jsonschema
import pytest

from tests.grafana.support import ROOT

SOURCES = Path(__file__).with_name("schema")
NAMES = ("package.json", "package-lock.json", ".npmrc", "checked.ts")
CACHE = ROOT / ".cache/grafana-schema"
GENERATE = ("npx", "--no-install", "ts-json-schema-generator", "--path", "checked.ts", "--type", "Checked",
            "--expose", "none", "--no-type-check", "--out", "checked.json")  # fmt: skip


def run(*words: str, folder: Path) -> None:
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, f"{' '.join(words)}: {done.stdout}{done.stderr}"


def made() -> Path:
    content = b"".join((SOURCES / name).read_bytes() for name in NAMES)
    folder = CACHE / hashlib.sha256(content).hexdigest()[:16]
    if (folder / "checked.json").exists():
        return folder / "checked.json"
    work = CACHE / f"{folder.name}.{os.getpid()}"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    for name in NAMES:
        shutil.copy(SOURCES / name, work)
    run("npm", "ci", folder=work)
    run(*GENERATE, folder=work)
    shutil.rmtree(work / "node_modules")
    shutil.rmtree(folder, ignore_errors=True)
    work.rename(folder)
    return folder / "checked.json"


@cache
def whole() -> dict:
    if not shutil.which("npm"):
        pytest.skip("npm is not installed: it makes the schemas")
    return json.loads(made().read_text())["definitions"]["Checked"]


def part(*path: str) -> dict:
    """The schema of a property of a property, as part("stat", "options") of a stat's options."""
    schema = whole()
    for name in path:
        schema = schema["properties"][name]
    return schema


def of_fields() -> dict:
    """The schema of what the fields of any panel have: unit, thresholds, links."""
    panel = next(each for each in part("dashboard", "panels")["items"]["anyOf"] if "fieldConfig" in each["properties"])
    return panel["properties"]["fieldConfig"]["properties"]["defaults"]


def problems(document: object, schema: dict) -> list[str]:
    errors = jsonschema.Draft7Validator(schema).iter_errors(document)
    return [f"{error.json_path}: {error.message[:300]}" for error in errors]
