"""How serving ends."""

import asyncio
import threading

from starlette.applications import Starlette

from trainvitals.web.config import WebConfig
from trainvitals.web.server import Server, bind


def test_what_was_ended_while_it_was_loaded_does_not_begin_to_serve(app: Starlette) -> None:
    """Nobody reads on, or Ctrl-C: before the server has handlers of its own."""
    ended = threading.Event()
    ended.set()

    async def served() -> None:
        await asyncio.wait_for(Server(app, WebConfig(), ended).serve(sockets=[listening]), 20)

    with bind("127.0.0.1", 0) as listening:
        asyncio.run(served())
