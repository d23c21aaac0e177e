"""TrainVitals: vital signs for GPU training.

    import trainvitals as tv
    run = tv.start("gemma-qlora")

This package is imported inside training processes, so it stays light: no web server, no
Prometheus client, no array library is imported until a part that needs it is.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trainvitals.run import Run, current, start

__all__ = ["Run", "__version__", "current", "start"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """The agent imports this package too, and needs nothing of what a run does."""
    if name not in ("Run", "current", "start"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from trainvitals import run

    return getattr(run, name)
