"""compose/ as it is shipped: its text, its services, and the variables that stand in it."""

import re
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "compose"
COMPOSE = (FOLDER / "compose.yaml").read_text()
GPU = (FOLDER / "compose.gpu.yaml").read_text()
EXAMPLE = FOLDER / ".env.example"
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load(COMPOSE)["services"]
# ${NAME:-default}; a default may hold another one.
_VARIABLE = re.compile(r"\$\{(\w+)(?::-((?:[^{}]|\{[^{}]*\})*))?\}")


def variables(text: str) -> list[tuple[str, str]]:
    """Each use of a variable, and its default there."""
    return [(name, default or "") for name, default in _VARIABLE.findall(text)]


def blocks() -> list[tuple[str, list[str]]]:
    """Every service's lines in the file, comments before its keys included."""
    text = COMPOSE.partition("\nservices:\n")[2].partition("\nvolumes:\n")[0]
    parts = re.split(r"^  ([a-z-]+):.*\n", text, flags=re.MULTILINE)[1:]
    return [(name, body.splitlines()) for name, body in zip(parts[::2], parts[1::2], strict=True)]
