"""Where a run's records go beside the journal: TensorBoard, W&B, MLflow. All of it outside the trainer.

    parse("wandb=my-project")  ->  Target("wandb", "my-project")
Each target has a process of its own (worker), which reads the journal and keeps a cursor beside it.
"""

import hashlib
import importlib.util
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from trainvitals.errors import TrainVitalsError, install_words

_LOGIN = re.compile(r"//[^/@\s]*@")


class SinkError(TrainVitalsError):
    """A target that cannot be used until somebody changes something."""


class Target(NamedTuple):
    kind: str
    place: str

    def __str__(self) -> str:
        return f"{self.kind}={self.place}"

    @property
    def shown(self) -> str:
        return without_logins(str(self))

    @property
    def key(self) -> str:
        """Names the target in a file's name."""
        return f"{self.kind}-{hashlib.sha256(self.place.encode('utf-8', 'replace')).hexdigest()[:10]}"


def without_logins(text: str) -> str:
    """An address may hold a password."""
    return _LOGIN.sub("//…@", text)


def parse(text: str) -> Target:
    """A path means the same wherever it is read."""
    kind, _, place = (part.strip() for part in text.partition("="))
    is_path = kind == "tensorboard" or (kind == "mlflow" and ":" not in place)
    return Target(kind, str(Path(place).expanduser().absolute()) if is_path else place)


def targets(texts: Iterable[str]) -> tuple[Target, ...]:
    """Each once; an error that names the extra where one's library is missing. Nothing heavy is imported."""
    found = tuple(dict.fromkeys(map(parse, texts)))
    for target in found:
        library = importlib.util.find_spec(target.kind)
        # A folder of that name, as W&B makes one for its files, has no origin.
        if library is None or library.origin is None:
            raise SinkError(f"{target.shown}: {target.kind} is not installed: {install_words(target.kind)}")
    return found
