"""What a worker process is told, as a line of its standard input (an address may hold a password):

{"sink":"wandb=my-project","root":"/var/lib/trainvitals","mode":"follow","host":"node1",…}
"""

import json
import os
import subprocess
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from trainvitals import starting

# Their libraries would else print, phone home, or wait for minutes.
_CALM = {"WANDB_SILENT": "true", "WANDB_ERROR_REPORTING": "false", "MLFLOW_DISABLE_TELEMETRY": "true",
         "MLFLOW_HTTP_REQUEST_TIMEOUT": "10", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
         "MLFLOW_ALLOW_FILE_STORE": "true", "TF_CPP_MIN_LOG_LEVEL": "3"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Job:
    """`mode` is `follow` (the node's runs, or `only` those, until told to end), `once` (`folder` is a run's) or `node`
    (`folder` is a node's; GPUs alone, from `began` on, cursor in `scratch`)."""

    sink: str
    root: str
    mode: str
    host: str = ""
    folder: str = ""
    run_name: str = ""
    began: float = 0.0
    scratch: str = ""
    only: tuple[str, ...] = ()

    def start(self, **pipes: Any) -> "subprocess.Popen[str]":
        """Ends when its input is closed, as it is when this process dies; in a session of its own, so that
        Ctrl-C meets only us and all that it started can be ended with it."""
        process = subprocess.Popen(starting.words("trainvitals.sinks.worker"), stdin=subprocess.PIPE,
                                   text=True, errors="replace", env={**_CALM, **os.environ}, start_new_session=True,
                                   **pipes)  # fmt: skip
        assert process.stdin is not None
        with suppress(BrokenPipeError):
            process.stdin.write(json.dumps(asdict(self)) + "\n")
            process.stdin.flush()
        return process
