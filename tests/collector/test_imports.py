"""What runs inside a training process stays light."""

import json
import subprocess
import sys

import pytest

FORBIDDEN = {"torch", "numpy", "starlette", "uvicorn", "prometheus_client", "psutil", "pynvml", "yaml", "asyncio"}
IN_THE_TRAINER = "trainvitals.run"


@pytest.mark.parametrize("names", ["trainvitals", IN_THE_TRAINER])
def test_nothing_heavy_is_imported(names: str) -> None:
    script = f"import {names}; import sys, json; print(json.dumps(sorted(sys.modules)))"
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert FORBIDDEN.isdisjoint(json.loads(said))


def test_one_reading_needs_no_web_server() -> None:
    script = """
import sys
from trainvitals.cli import main
main(["once", "--json", "--simulate", "1"])
print(sorted({"starlette", "uvicorn", "prometheus_client", "asyncio"} & set(sys.modules)), file=sys.stderr)
"""
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert said.stderr.strip() == "[]"
    assert json.loads(said.stdout)["gpus"]
