"""What a run says of itself: its configuration, however that is kept."""

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any


def tags_of(tags: Iterable[object] | None) -> list[str]:
    return [tags] if isinstance(tags, str) else [str(tag) for tag in tags or ()]


def config_of(config: object) -> dict[str, Any]:
    """A mapping, a dataclass or any object with attributes (argparse's Namespace), as a dictionary."""
    if config is None:
        return {}
    if isinstance(config, Mapping):
        return {str(key): value for key, value in config.items()}
    if is_dataclass(config) and not isinstance(config, type):
        return {field.name: getattr(config, field.name) for field in fields(config)}
    return {key: value for key, value in vars(config).items() if not key.startswith("_")}
