"""The numbers that alerts fire at, read from the rules, so that a panel turns orange when the alert does.

threshold("gpu_temperature:celsius")  ->  80.0
"""

from functools import cache
from pathlib import Path
from typing import Any

import yaml

PATH = Path(__file__).parents[1] / "prometheus/rules/thresholds.yml"


@cache
def recorded() -> dict[str, float]:
    rules: Any = yaml.safe_load(PATH.read_text())
    return {rule["record"]: float(rule["expr"]) for group in rules["groups"] for rule in group["rules"]}


def threshold(name: str) -> float:
    found = recorded()
    series = f"threshold:{name}"
    if series not in found:
        raise KeyError(f"{PATH.name} records no {series}: name one of {', '.join(sorted(found))}")
    return found[series]
