"""TrainVitals: vital signs for GPU training.

This package is imported inside training processes, so it stays light: no web server, no
Prometheus client, no array library is imported until a part that needs it is.
"""

__version__ = "0.1.0"
