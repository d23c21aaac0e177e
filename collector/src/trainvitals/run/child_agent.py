"""An agent for as long as the run lasts, where none listens for its journal: `tv.start(..., agent=True)`."""

import fcntl
import logging
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

from trainvitals.journal import layout

PORT = 8080
END_SECONDS = 3.0

log = logging.getLogger("trainvitals")


class ChildAgent:
    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        # What it says on its way, its address first, is the run's user's to read.
        threading.Thread(target=self._pass_on, name="trainvitals-agent", daemon=True).start()

    def remove(self) -> None:
        """It has until the interpreter's end to end; it does so by itself when this process is gone."""
        if self._process.poll() is None:
            self._process.terminate()

    def _pass_on(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            print(f"trainvitals: {line.rstrip()}", file=sys.stderr)
        self._process.wait()


def start(root: Path) -> ChildAgent | None:
    if is_listened_to(root):
        return None
    words = [sys.executable, "-m", "trainvitals.cli", "serve", "--with-parent", str(os.getpid()), "--dir", str(root),
             "--port", str(_free_port())]  # fmt: skip
    # Not a child of the training job to its launcher: a session of its own, and no rank's variables.
    environ = {key: value for key, value in os.environ.items() if key != "TRAINVITALS_RUN_ID"}
    return ChildAgent(subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, env=environ,
                                       start_new_session=True))  # fmt: skip


def is_listened_to(root: Path) -> bool:
    """Whether this host's agent holds its lock on the journal."""
    try:
        fd = os.open(layout.gpu_folder(root, layout.host_name()) / ".agent", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def _free_port() -> int:
    """The usual one, else any."""
    with socket.socket() as attempt:
        attempt.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            attempt.bind(("127.0.0.1", PORT))
        except OSError:
            return 0
    return PORT
