"""A run's config as plain pairs.

{"optimizer": {"lr": 0.1}, "layers": [1, 2]}  ->  {"optimizer.lr": 0.1, "layers": "[1, 2]"}
"""

import json
from collections.abc import Mapping
from typing import Any

MAX_DEPTH = 8


def flat(config: Mapping[str, Any], prefix: str = "", depth: int = 0) -> dict[str, Any]:
    pairs: dict[str, Any] = {}
    for name, value in config.items():
        if isinstance(value, Mapping) and value and depth < MAX_DEPTH:
            pairs |= flat(value, f"{prefix}{name}.", depth + 1)
        else:
            pairs[f"{prefix}{name}"] = value if isinstance(value, (str, int, float)) else json.dumps(value)
    return pairs
