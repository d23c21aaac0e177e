"""A Ray cluster, asked by a process of its own: Ray ends the process that has lost its cluster, and one that hangs
holds up no agent.

    ray_cluster_nodes 2, ray_cluster_resource_used{resource="GPU"} 12, ray_cluster_resource_available{resource="GPU"} 4
"""

import importlib.util
import json
import re
import subprocess
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from trainvitals import starting
from trainvitals.errors import SourceError
from trainvitals.model import Reading, Tier

ASK_SECONDS = 5.0
STALE_SECONDS = 20.0
# One that ended is started again, but starting costs some seconds of a processor.
AGAIN_SECONDS = 30.0
_LOG_HEAD = re.compile(r"^\[[^\]]*\]\s*")


class Cluster:
    """What the process said last."""

    key = "ray"
    errors = 0

    def __init__(self, address: str) -> None:
        self._address = address
        self._process: subprocess.Popen[str] | None = None
        self._started = float("-inf")
        self._heard = float("-inf")
        self._told: dict[str, Any] = {}
        self._words = ""
        self._first = threading.Event()

    def ensure(self) -> None:
        """Starts the process that asks, where there is none."""
        now = time.monotonic()
        is_alive = self._process is not None and self._process.poll() is None
        if is_alive or now - self._started < AGAIN_SECONDS:
            return
        self._started, self._words = now, ""
        self._first.clear()
        words = starting.words("trainvitals.integrations.ray", self._address, str(ASK_SECONDS))
        self._process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         stderr=subprocess.STDOUT, text=True, start_new_session=True)  # fmt: skip
        threading.Thread(target=self._listen, args=(self._process,), name="trainvitals-ray", daemon=True).start()

    def read(self, tier: Tier) -> Sequence[Reading]:
        self._first.wait(max(0.0, self._started + STALE_SECONDS - time.monotonic()))
        if tier != "fast":
            return ()
        now = time.monotonic()
        if now - self._heard <= STALE_SECONDS:
            return readings(self._told)
        self.errors += 1
        raise SourceError("ray", f"no cluster answers at {self._address!r} ({self._words or 'it says nothing'})",
                          self._fix())  # fmt: skip

    def _fix(self) -> str:
        if "AuthToken" in self._words or "Unauthenticated" in self._words:
            return "run the agent as the user that started Ray, with RAY_AUTH_MODE=token"
        return "start one with `ray start --head`, or correct --ray-address"

    def end(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()

    def _listen(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout is not None
        for line in process.stdout:
            with suppress(ValueError):
                self._told, self._heard = dict(json.loads(line)), time.monotonic()
                self._first.set()
                continue
            self._words = _LOG_HEAD.sub("", line.strip())[:300] or self._words
        process.wait()
        self._first.set()


class RaySource:
    name = "ray"
    gpu_count = 0

    def __init__(self, address: str) -> None:
        self._cluster = Cluster(address)

    def discover(self) -> Sequence[Cluster]:
        if importlib.util.find_spec("ray") is None:
            raise SourceError("ray", "the package is not installed beside trainvitals",
                              "`pip install ray` in the version that the cluster has")  # fmt: skip
        self._cluster.ensure()
        return [self._cluster]

    def close(self) -> None:
        self._cluster.end()


def clusters(address: str) -> list[RaySource]:
    return [RaySource(address)] if address else []


def readings(told: dict[str, Any]) -> list[Reading]:
    when, available = told["time"], told["available"]
    found = [Reading("ray", (), {"nodes": float(told["nodes"])}, when)]
    for resource, total in told["total"].items():
        values = {"used": total - available[resource], "available": available[resource]}
        found.append(Reading("ray_resource", (("resource", resource),), values, when))
    return found
