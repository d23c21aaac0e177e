"""What tests of several façades need."""

import pytest


def scalars(folder, name):
    """Steps and values of one series, out of TensorBoard's own reader."""
    pytest.importorskip("tensorboard", reason="tensorboard is not installed: make trainers")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    if not folder.is_dir():
        return []
    read = EventAccumulator(str(folder))
    read.Reload()
    return [(each.step, each.value) for each in read.Scalars(name)] if name in read.Tags()["scalars"] else []
