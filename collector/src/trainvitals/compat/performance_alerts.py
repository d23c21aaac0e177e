"""Rules of compat.performance on the runs' own alerts: a condition on a step's metrics, and a message.

A threshold of the configuration sets that of the detector that looks at it, else it is a rule too: {"loss": 9.0}.
"""

from collections.abc import Callable
from typing import Any

from trainvitals.compat.performance_config import Settings
from trainvitals.compat.performance_metrics import Message, TrainingMetrics
from trainvitals.compat.performance_thresholds import CONFIG_KEY, split
from trainvitals.run import Run
from trainvitals.run.alerts import Untold
from trainvitals.run.off import OffRun

Condition = Callable[[TrainingMetrics], Any]
# Thresholds with a name of their own -> the metric that they are about.
_CALLED = {"gpu_temperature_celsius": "gpu_temperature", "gradient_norm_exploded": "grad_norm",
           "grad_norm_exploded": "grad_norm"}  # fmt: skip


class AlertSystem:
    def __init__(self, settings: Settings, system_monitor: Any) -> None:
        self._system = system_monitor
        self._is_on = settings.alerts
        self._run: Run = OffRun()  # type: ignore[assignment]
        self._rules: list[tuple[Any, ...]] = []
        handed, kept = split(settings.thresholds)
        # For the run's configuration.
        self.config = {CONFIG_KEY: handed} if handed and self._is_on else {}
        for name, limits in kept.items():
            for severity, limit in limits.items():
                self.add_alert_rule(name=f"{name} over {limit}", condition=self._over(name, limit),
                                    severity=severity, message=f"{name} is over {limit}")  # fmt: skip

    def add_alert_rule(self, name: str, condition: Condition, severity: str = "warning", message: str = "",
                       cooldown_seconds: float = 300.0) -> None:  # fmt: skip
        rule = (name, _asked(condition), severity, Message(message), cooldown_seconds)
        self._rules.append(rule)
        if self._is_on:
            self._run.alert_when(*rule)

    def attach(self, run: Run) -> None:
        """Rules that were added before the run began hold from its start."""
        self._run = run
        for rule in self._rules if self._is_on else ():
            run.alert_when(*rule)

    def _over(self, name: str, limit: Any) -> Condition:
        """Of a step's metrics, else of the machine's."""
        name = _CALLED.get(name, name)

        def is_over(metrics: TrainingMetrics) -> bool:
            value = getattr(metrics, name, None)
            value = self._system.get_metrics().get(name) if value is None else value
            return value is not None and float(value) > float(limit)

        return is_over


def _asked(condition: Condition) -> Callable[[dict[str, Any]], bool]:
    """A condition on what a step did not tell is not met."""

    def holds(record: dict[str, Any]) -> bool:
        metrics = TrainingMetrics.of(record)
        try:
            return bool(condition(metrics))
        except TypeError:
            if None in vars(metrics).values():
                return False
            raise
        except AttributeError as error:
            raise Untold(str(error)) from error

    return holds
