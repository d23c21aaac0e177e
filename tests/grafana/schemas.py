"""JSON Schemas made of Grafana's own published types; properties that the types do not name are refused.

They are made once for each lock of schema/ and kept in .cache. Needs Node and npm.
"""

import json
import shutil
from functools import cache
from pathlib import Path

import jsonschema

from tests import npm

SOURCES = Path(__file__).with_name("schema")
NAMES = ("package.json", "package-lock.json", ".npmrc", "checked.ts")
GENERATE = ("npx", "--no-install", "ts-json-schema-generator", "--path", "checked.ts", "--type", "Checked",
            "--expose", "none", "--no-type-check", "--out", "checked.json")  # fmt: skip


def _generate(folder: Path) -> None:
    npm.run(*GENERATE, folder=folder)
    shutil.rmtree(folder / "node_modules")


@cache
def whole() -> dict:
    folder = npm.made(SOURCES, NAMES, "grafana-schema", _generate)
    return json.loads((folder / "checked.json").read_text())["definitions"]["Checked"]


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
