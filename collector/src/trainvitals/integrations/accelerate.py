"""A tracker for Accelerate.

tracker = TrainVitalsTracker("gemma", tags=["lora"])
accelerator = Accelerator(log_with=[tracker])        # or log_with="trainvitals", once this module is imported
accelerator.init_trackers("gemma", config={"lr": 3e-4})
for batch in tracker.run.data(loader):               # a loader that accelerator.prepare gave
    with tracker.run.step(): ...
    tracker.run.log(loss=loss)          ->  {"step": 1, "data_wait_seconds": 0.01, "loss": 2.3, ...}
"""

from collections.abc import Iterator, Mapping
from typing import Any

from trainvitals.integrations.training import Training
from trainvitals.run import Run, harmless

try:
    from accelerate import PartialState, tracking
except ImportError as error:
    raise ImportError(
        f"trainvitals.integrations.accelerate needs Accelerate: pip install accelerate ({error})"
    ) from error


class TrainVitalsTracker(tracking.GeneralTracker):
    """`run` writes on every process, each its own file, as ranks differ in how long they wait;
    `main_process_only=True` leaves the others out. What Accelerate calls is called on the main process alone. Other
    options are those of `trainvitals.start`."""

    name = "trainvitals"
    requires_logging_directory = False

    def __init__(self, run_name: str = "", *, main_process_only: bool = False, **start_options: Any) -> None:
        super().__init__()
        self.main_process_only = main_process_only
        self._training = Training("accelerate", run_name, {"rank_zero_only": main_process_only, **start_options})
        self._has_begun = False

    @harmless
    def start(self) -> None:
        """By `init_trackers`, and by older versions' first use."""
        if not self._has_begun:
            self._has_begun = True
            state = PartialState()
            self._training.begin("accelerate", 0, rank=state.process_index, local_rank=state.local_process_index,
                                 world_size=state.num_processes)  # fmt: skip

    @property
    def run(self) -> Run:
        self.start()
        return self._training.run

    tracker = run

    def failed(self, error: BaseException) -> None:
        self._training.failed(error)

    @harmless
    def store_init_configuration(self, values: Mapping[str, Any]) -> None:
        self.run.describe(values)

    @harmless
    def log(self, values: Mapping[str, Any], step: int | None = None, **_: Any) -> None:
        self.run.log(dict(_flat(values)), step=step)

    @harmless
    def finish(self) -> None:
        self._training.end()


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}/")
        else:
            yield f"{prefix}{name}", value


# By its name in `log_with`, where this version of Accelerate knows of trackers that are not its own.
if hasattr(tracking, "register_tracker_class"):
    tracking.register_tracker_class(TrainVitalsTracker)
