"""Programs that work for minutes: heard line by line, ended in time, and gently when somebody types Ctrl-C.

follow(["terraform", "apply"], folder=here, seconds=3600, hear=print)  ->  0

Each has a session of its own, so that a Ctrl-C meets it once, and from here: a Terraform that is interrupted twice goes
without writing down what it made. It speaks into a file, which is read here: whatever ends us, it works on to its end.
It inherits what is inheritable, the lock of kept.py that is: nobody else begins before it has ended.
"""

import contextlib
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

from deploy import say
from deploy.errors import DeployError

GENTLY_SECONDS, SOON_SECONDS, IDLE_SECONDS = 300, 20, 20
LOOK_SECONDS = 0.1
Hear = Callable[[str], object]


def follow(words: Sequence[str], *, folder: Path, seconds: float, hear: Hear,
           environ: Mapping[str, str] | None = None, idle: Callable[[], object] = lambda: None) -> int:  # fmt: skip
    """`idle` is called every now and then while nothing else happens here."""
    with tempfile.NamedTemporaryFile() as said:
        process = _started(words, folder, environ, said.fileno())
        # What was opened anew is read from its beginning, wherever the program writes.
        with open(said.name, "rb") as stream:
            _heard(process, stream, hear, seconds, idle)
    return process.returncode


def _heard(process: "subprocess.Popen[bytes]", stream: IO[bytes], hear: Hear, seconds: float,
           idle: Callable[[], object]) -> None:  # fmt: skip
    ended = threading.Event()
    reader = threading.Thread(target=_read, args=(stream, hear, ended), daemon=True)
    reader.start()
    try:
        _wait(process, seconds, idle)
    except KeyboardInterrupt:
        name = Path(_program(process)).name
        say.line(f"Ctrl-C: waiting until {name} has written down what it did. Again: it ends at once.")
        raise
    finally:
        _end(process)
        ended.set()
        reader.join()


def ask(words: Sequence[str], *, folder: Path, seconds: float, environ: Mapping[str, str] | None = None,
        given: str = "") -> "subprocess.CompletedProcess[str]":  # fmt: skip
    """What a program answers that is soon done."""
    try:
        return subprocess.run(words, cwd=folder, env=environ, check=False, capture_output=True, text=True,
                              timeout=seconds, input=given)  # fmt: skip
    except FileNotFoundError as error:
        raise _missing(words[0]) from error
    except subprocess.TimeoutExpired as error:
        raise _late(words[0], seconds) from error


def _started(words: Sequence[str], folder: Path, environ: Mapping[str, str] | None,
             said: int) -> "subprocess.Popen[bytes]":  # fmt: skip
    try:
        return subprocess.Popen(words, cwd=folder, env=environ, start_new_session=True, close_fds=False,
                                stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT)  # fmt: skip
    except FileNotFoundError as error:
        raise _missing(words[0]) from error


def _read(stream: IO[bytes], hear: Hear, ended: threading.Event) -> None:
    """Line by line, until the program has ended and all of it was read."""
    begun, last = b"", False
    while not last:
        last = ended.wait(LOOK_SECONDS)
        while text := stream.readline():
            begun += text
            if begun.endswith(b"\n"):
                _tell(begun, hear)
                begun = b""
    if begun:
        _tell(begun, hear)


def _tell(text: bytes, hear: Hear) -> None:
    # Whoever no longer looks on does not stop the program.
    with contextlib.suppress(OSError):
        hear(text.decode(errors="replace"))


def _program(process: "subprocess.Popen[bytes]") -> str:
    return str(process.args[0])  # type: ignore[index]


def _wait(process: "subprocess.Popen[bytes]", seconds: float, idle: Callable[[], object]) -> None:
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        try:
            process.wait(min(left, IDLE_SECONDS))
            return
        except subprocess.TimeoutExpired:
            idle()
    raise _late(_program(process), seconds)


def _end(process: "subprocess.Popen[bytes]") -> None:
    for seconds in (GENTLY_SECONDS, SOON_SECONDS):
        if process.poll() is not None:
            return
        with contextlib.suppress(subprocess.TimeoutExpired, KeyboardInterrupt):
            process.send_signal(signal.SIGINT)
            process.wait(seconds)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _missing(program: str) -> DeployError:
    return DeployError(f"{program} is not installed; what make brings comes by: make .venv/.deploy")


def _late(program: str, seconds: float) -> DeployError:
    return DeployError(f"{program} did not end within {seconds:g} s and was ended: run this again")
