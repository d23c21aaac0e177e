"""What people call a value, folded onto the journal's name for it: `lr` and `train/learning_rate` are
`learning_rate`."""

import re
from contextlib import suppress

_SPELLINGS = {
    "loss": "train_loss training_loss loss_train loss_total total_loss",
    "learning_rate": "lr learningrate train_lr train_learning_rate training_learning_rate lr_0 learning_rate_0",
    "gradient_norm": "grad_norm gradnorm gradientnorm gnorm grad_norm_total total_grad_norm global_grad_norm "
    "train_grad_norm train_gradient_norm total_norm",
    "throughput_samples_per_sec": "throughput samples_per_second samples_per_sec samples_per_s samples_s "
    "train_samples_per_second train_throughput examples_per_second examples_per_sec images_per_second images_per_sec "
    "throughput_samples_per_second train_samples_per_sec",
    "tokens_per_second": "tokens_per_sec tokens_per_s tokens_s tok_s tok_per_sec tok_per_s tps train_tokens_per_second "
    "throughput_tokens_per_sec throughput_tokens_per_second train_tokens_per_sec",
    "memory_allocated_mb": "gpu_memory_allocated_mb cuda_memory_allocated_mb memory_allocated_mib",
    "memory_reserved_mb": "gpu_memory_reserved_mb cuda_memory_reserved_mb memory_reserved_mib",
    "epoch": "train_epoch current_epoch",
    "step": "global_step train_global_step",
    "step_duration_seconds": "step_time_s step_time_sec step_time_seconds step_seconds seconds_per_step sec_per_step",
    "data_wait_seconds": "data_time_s data_time_sec data_time_seconds data_wait_s",
    # The journal's own: a value of the user's must not stand for the time of the line.
    "timestamp_": "timestamp",
}  # fmt: skip
_TABLE = {spelling: name for name, spellings in _SPELLINGS.items() for spelling in spellings.split()}
_BETWEEN = re.compile(r"[\s./:-]+")
MAX_KNOWN = 2000
# As they were written -> the journal's; and those that stand for themselves.
_known: dict[str, str] = {}
own: set[str] = set()


def fold(name: object) -> str:
    text = name if isinstance(name, str) else str(name)
    found = _known.get(text)
    if found is None:
        plain = _BETWEEN.sub("_", text.strip().lower())
        found = _TABLE.get(plain) or (plain if plain in _SPELLINGS else text)
        if len(_known) < MAX_KNOWN:
            _known[text] = found
            if found == name and found != "step":
                own.add(found)
    return found


def fold_all(values: dict[str, object]) -> dict[str, object]:
    """Where two mean the same, the one that has the name keeps it and the other stays as it was written."""
    with suppress(KeyError):
        known = {_known[name]: value for name, value in values.items()}
        if len(known) == len(values):
            return known
    folded: dict[str, object] = {}
    for name, value in values.items():
        wanted = fold(name)
        if wanted in folded or (wanted != name and wanted in values):
            wanted = str(name)
        while wanted in folded or wanted == "timestamp":
            wanted += "_"
        folded[wanted] = value
    return folded
