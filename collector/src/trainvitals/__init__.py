"""TrainVitals: vital signs for GPU training.

    import trainvitals as tv
    run = tv.start("gemma-qlora")

This package is imported inside training processes, so it stays light: no web server, no
Prometheus client, no array library is imported until a part that needs it is.
"""

__version__ = "0.1.0"

# Not when `start` is called, for a process that has no more file descriptors can import nothing.
from trainvitals.run import Run, current, start

__all__ = ["Run", "__version__", "current", "start"]
