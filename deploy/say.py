"""What the commands tell: a heading a stage, a question before anything costs money or is gone.

deploy: 2/5 Machines
"""

import os
import sys

from deploy.errors import DeployError


def stage(number: int, of: int, name: str) -> None:
    print(f"\ndeploy: {number}/{of} {name}", flush=True)


def line(text: str) -> None:
    print(f"  {text}", flush=True)


def agree(question: str) -> None:
    """Returns when the user says yes, or YES=1 said it before."""
    if os.environ.get("YES", "0") not in ("", "0"):
        return
    if not sys.stdin.isatty():
        raise DeployError(f"{question} Nobody is there to answer: say YES=1 to agree beforehand")
    if input(f"{question} [yes/no] ").strip().lower() not in ("y", "yes"):
        raise DeployError("nothing was done")
