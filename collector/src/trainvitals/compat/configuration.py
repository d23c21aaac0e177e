"""A configuration as it is given: a dictionary, or the path of a YAML file. One that cannot be read is a warning."""

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trainvitals.errors import install_words

log = logging.getLogger("trainvitals")


def read(config: Mapping[str, Any] | str | os.PathLike[str] | None) -> Mapping[str, Any]:
    if config is None or isinstance(config, Mapping):
        return config or {}
    try:
        import yaml

        found = yaml.safe_load(Path(config).expanduser().read_text(encoding="utf-8"))
    except ModuleNotFoundError:
        log.warning("config: %s is not read: yaml is missing: %s", config, install_words("web"))
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        log.warning("config: %s is not read: %s", config, " ".join(str(error).split()))
    else:
        if isinstance(found, Mapping):
            return found
        log.warning("config: %s holds no keys: write them as `key: value`", config)
    return {}
