"""verl: a backend for its `Tracking`, named "trainvitals", and GPU monitoring by the trainer's settings.

VERL_USE_EXTERNAL_MODULES=trainvitals.integrations.verl python -m verl.trainer.main_ppo \\
    trainer.logger='["console","trainvitals"]' +trainer.enable_gpu_monitoring=True +trainer.gpu_monitor_interval=2
->  {"step": 7, "actor/grad_norm": 0.4, "gradient_norm": 0.4, "perf/throughput": 812.0, "tokens_per_second": 6496.0, …}
"""

import sys
from collections.abc import Mapping
from typing import Any

from trainvitals.integrations.rl_names import VERL, added
from trainvitals.journal import layout
from trainvitals.run import Run, child_agent, harmless, start

NAME = "trainvitals"


class TrainVitalsLogger:
    """What verl's `Tracking` holds for each of its targets: `log(data, step)`, `finish()`."""

    def __init__(self, project_name: str, experiment_name: str, config: Any = None) -> None:
        settings = trainer_settings(config) or {}
        self.run: Run = start(f"{project_name}-{experiment_name}", plain(config), framework="verl",
                              tags=(project_name, experiment_name),
                              planned_steps=settings.get("total_training_steps"))  # fmt: skip
        if settings.get("enable_gpu_monitoring"):
            monitor_gpus(self.run, settings.get("gpu_monitor_interval"))

    def log(self, data: Mapping[str, Any], step: int, backend: object = None) -> None:
        harmless(self._log)(data, step)

    def _log(self, data: Mapping[str, Any], step: int) -> None:
        values = added(data, VERL)
        if {"perf/total_num_tokens", "perf/time_per_step"} <= values.keys():
            # perf/throughput is a GPU's share of it.
            rate = float(values["perf/total_num_tokens"]) / float(values["perf/time_per_step"])
            values.setdefault("tokens_per_second", rate)
        self.run.log(values, step=int(step))

    def finish(self, exit_code: int = 0) -> None:
        self.run.finish("crashed" if exit_code else "finished", f"exit code {exit_code}" if exit_code else "")


@harmless
def monitor_gpus(run: Any, interval: float | None = None) -> None:
    """An agent for as long as the run lasts, where none listens for its journal."""
    pace = ("--interval", str(float(interval))) if interval else ()
    if run and run.local_rank == 0:
        root = layout.find_root() if run.folder is None else run.folder.parent.parent
        run.keep(child_agent.start(root, *pace))


@harmless
def trainer_settings(config: Any) -> Any:
    """`config.trainer`, of a dictionary or of OmegaConf's."""
    return {} if config is None else (config.get("trainer") or {})


@harmless
def plain(config: Any) -> dict[str, Any]:
    """OmegaConf's interpolations are resolved."""
    if config is None or type(config) is dict:
        return config or {}
    omegaconf: Any = sys.modules.get("omegaconf")
    is_theirs = omegaconf is not None and omegaconf.OmegaConf.is_config(config)
    return dict(omegaconf.OmegaConf.to_container(config, resolve=True) if is_theirs else config)


def install() -> None:
    """Teaches verl the backend. verl's trainers look `Tracking` up when they begin."""
    from verl.utils import tracking

    if NAME not in tracking.Tracking.supported_backend:
        tracking.Tracking = _taught(tracking.Tracking)


def _taught(original: Any) -> Any:
    class Tracking(original):
        supported_backend = [*original.supported_backend, NAME]  # noqa: RUF012 - as verl has it

        def __init__(self, project_name: str, experiment_name: str, default_backend: str | list[str] = "console",
                     config: Any = None) -> None:  # fmt: skip
            wanted = [default_backend] if isinstance(default_backend, str) else list(default_backend)
            super().__init__(project_name, experiment_name, [name for name in wanted if name != NAME], config)
            if NAME in wanted:
                self.logger[NAME] = TrainVitalsLogger(project_name, experiment_name, config)

        def finish(self, exit_code: int = 0) -> None:
            """verl ends those that it knows."""
            super().finish(exit_code)
            ours = getattr(self, "logger", {}).get(NAME)
            if ours is not None:
                ours.finish(exit_code)

    Tracking.__qualname__ = Tracking.__name__
    return Tracking


# verl imports what VERL_USE_EXTERNAL_MODULES names, in each of its processes.
if "verl" in sys.modules:
    install()
