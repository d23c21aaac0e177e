"""The SDK: what runs inside the training process, and only appends to the journal.

run = tv.start("gemma-qlora", config={"lr": 3e-4})
with run.step():
    ...
run.log(loss=loss)      ->  {"timestamp": …, "step": 1, "step_duration_seconds": 0.5, "loss": 2.3}
"""

from trainvitals.run.begin import current, start
from trainvitals.run.harmless import harmless
from trainvitals.run.names import fold
from trainvitals.run.run import Run

__all__ = ["Run", "current", "fold", "harmless", "start"]
