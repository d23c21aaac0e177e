"""What watch() is asked for, made usable; what cannot be used is told and left out, for a run goes on."""

import logging
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

from trainvitals.run.watch_layers import bare

log = logging.getLogger("trainvitals.run")

EVERY = 10
Patterns = Sequence[str] | str | None


def optimizers(given: Any) -> list[Any]:
    """torch's own, out of what trainers wrap around them."""
    found = []
    for each in given if isinstance(given, (list, tuple)) else [] if given is None else [given]:
        optimizer = each
        while not hasattr(optimizer, "_optimizer_step_pre_hooks") and hasattr(optimizer, "optimizer"):
            optimizer = optimizer.optimizer
        if hasattr(optimizer, "register_step_pre_hook"):
            found.append(optimizer)
        else:
            log.warning("optimizer: %s cannot be used: it is no torch.optim.Optimizer; without it a step is a "
                        "backward, and there is no update_ratio", type(each).__name__)  # fmt: skip
    return found


def every(given: Any) -> int:
    if isinstance(given, int) and given >= 1:
        return given
    shown = repr(given) if isinstance(given, (int, float, str)) else type(given).__name__
    log.warning("every: %s cannot be used: it is a number of steps, 1 or more; %d is taken", shown, EVERY)
    return EVERY


def patterns(given: Patterns, model: Any) -> list[str]:
    wanted = [given] if isinstance(given, str) else list(given or ())
    names = [name for name, _ in bare(model).named_modules()]
    for pattern in wanted:
        if not any(name == pattern or fnmatchcase(name, pattern) for name in names):
            log.warning("layers: %r names no module of the model; they are named as %s",
                        pattern, ", ".join(map(repr, names[1:6])) or "nothing: it has none")  # fmt: skip
    return wanted
