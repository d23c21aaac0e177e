"""From a fault of a GPU to the request at a webhook, through a whole agent. The benchmark measures how fast that is."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.collector.agent.fakes import FakeEventSource, FakeGpu
from tests.collector.support import wait_for
from tests.notify.support import Hook
from trainvitals import config
from trainvitals.agent.service import Agent
from trainvitals.errors import DeviceLost
from trainvitals.model import Event
from trainvitals.telling import Telling


@contextmanager
def watched(root: Path, source: FakeEventSource, url: str) -> Iterator[Agent]:
    telling = Telling(config.load({"notify": f"webhook={url}"}, {}), {})
    agent = Agent([source], root, interval=0.1, engine=telling.engine, tell=telling.tell, ways=telling.ways)
    agent.start()
    telling.start(agent)
    try:
        wait_for(lambda: len(list(agent.snapshot.of("gpu"))) == len(source.devices))
        # A source is given a while to find what there is: that is over.
        telling.engine._node("", "").host._began = 1.0
        yield agent
    finally:
        agent.stop()
        telling.stop()


def told(server: Hook) -> list[dict[str, Any]]:
    return [one for body in server.taken for one in body["findings"]]


def test_a_fatal_xid_reaches_a_webhook(tmp_path: Path, server: Hook) -> None:
    source = FakeEventSource([FakeGpu(0), FakeGpu(1)])
    with watched(tmp_path, source, server.url):
        source.events = [Event("xid", (("gpu", "1"), ("uuid", "GPU-1")), {"xid": 79.0}, time.time())]
        wait_for(lambda: told(server))
    assert (told(server)[0]["kind"], told(server)[0]["place"]) == ("GpuXidFatal", {"gpu": "1", "uuid": "GPU-1"})


def test_a_gpu_that_is_lost_reaches_a_webhook_by_its_name(tmp_path: Path, server: Hook) -> None:
    gpu = FakeGpu(1)
    with watched(tmp_path, FakeEventSource([FakeGpu(0), gpu]), server.url):
        gpu.error = DeviceLost("nvml", "gone")
        wait_for(lambda: told(server))
    (found,) = told(server)
    assert (found["kind"], found["what"]) == ("GpuMissing", "1 of 2 GPUs answer: GPU 1 (GPU-1) is missing")
