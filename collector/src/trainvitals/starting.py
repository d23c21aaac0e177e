"""Starting a module of ours as another process: what lies in the folder of the training is not imported there.

words("trainvitals.cli", "serve")  ->  ["/usr/bin/python3", "-c", …, "trainvitals.cli", "serve"]
"""

import sys
from pathlib import Path

# As `-m`, which would take a `logging.py` of the training's for Python's; the folder that holds us comes last.
_PROGRAM = """import runpy, sys
sys.path[:] = [*filter(None, sys.path), sys.argv.pop(1)]
runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)"""
_PACKAGES = Path(__file__).parents[1]


def words(module: str, *arguments: str) -> list[str]:
    return [sys.executable, "-c", _PROGRAM, str(_PACKAGES), module, *arguments]
