"""What stands before Prometheus and Alertmanager: the check of Host and Origin that neither of them makes.

Any page that is open in the user's browser reaches what listens on loopback; by Alertmanager it could silence every
alert. `python -m trainvitals.stack gate` passes on what no page of another site can have sent, a request a connection.
"""

import asyncio
import contextlib
import http.client
import signal
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

from trainvitals.config import names
from trainvitals.errors import SettingError
from trainvitals.stack.heads import Head, Refusal, body_length
from trainvitals.stack.passing import Gone, Peer, end, head_of, pass_on, refuse, within
from trainvitals.web.callers import Hosts, is_own, is_part_of_another

DOORS = ("9090:prometheus:9090", "9093:alertmanager:9093")
MOST_CONNECTIONS = 128
# Beyond those so many at a time are told that there are too many; others wait to be accepted.
SPARE = 16
CONNECT_SECONDS = 5.0
ENDING_SECONDS = 2.0
CHECK_SECONDS = 4.0
_ANOTHER_SITE = "another-site.invalid"


class Door(NamedTuple):
    """A port here, and the service and port that it leads to."""

    port: int
    service: str
    beyond: int


def door(value: str) -> Door:
    """give port:service:port, such as 9093:alertmanager:9093"""
    try:
        port, service, beyond = value.split(":")
        return Door(int(port), service, int(beyond))
    except ValueError as error:
        raise SettingError("gate", value, door.__doc__ or "") from error


def serve(doors: Sequence[str], environ: Mapping[str, str]) -> None:
    """Returns after SIGTERM or SIGINT."""
    asyncio.run(_until_signal(Gate(hosts(environ)), list(_opened(doors))))


def hosts(environ: Mapping[str, str]) -> Hosts:
    links = (urlsplit(environ.get(name, "").strip()).hostname for name in ("PROMETHEUS_URL", "ALERTMANAGER_URL"))
    return Hosts([*names(environ.get("TRAINVITALS_ALLOWED_HOSTS", "")), *filter(None, links)])


def problem(doors: Sequence[str]) -> str:
    """The health check: nothing where each port answers, and refuses what a page of another site asks."""
    return "; ".join(filter(None, (_problem_of(door(each).port) for each in doors)))


def _problem_of(port: int) -> str:
    asking = http.client.HTTPConnection("127.0.0.1", port, timeout=CHECK_SECONDS)
    try:
        asking.request("GET", "/", headers={"Host": _ANOTHER_SITE})
        status = asking.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        return f"the gate does not answer on port {port}: {error}"
    finally:
        asking.close()
    return "" if status == 403 else f"the gate answers {status} to another site on port {port}"


def _opened(doors: Sequence[str]) -> Iterator[tuple[socket.socket, Door]]:
    for leading in map(door, doors):
        yield socket.create_server(("", leading.port), backlog=128), leading


async def _until_signal(gate: "Gate", doors: list[tuple[socket.socket, Door]]) -> None:
    told = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, told.set)
    waiting = asyncio.create_task(told.wait())
    accepting = [asyncio.create_task(gate.accept(listening, leading)) for listening, leading in doors]
    done, _ = await asyncio.wait({waiting, *accepting}, return_when=asyncio.FIRST_COMPLETED)
    await end(accepting)
    for listening, _ in doors:
        listening.close()
    await gate.end()
    for each in done:
        each.result()


class Gate:
    def __init__(self, known: Hosts) -> None:
        self._hosts = known
        self._open: set[asyncio.Task[None]] = set()
        self._room = asyncio.Semaphore(MOST_CONNECTIONS + SPARE)

    async def accept(self, listening: socket.socket, leading: Door) -> None:
        listening.setblocking(False)
        while True:
            await self._room.acquire()
            try:
                accepted, _ = await asyncio.get_running_loop().sock_accept(listening)
            except OSError:
                # They went away again, or descriptors are short.
                self._room.release()
                await asyncio.sleep(0.1)
                continue
            task = asyncio.create_task(self._serve(accepted, leading))
            self._open.add(task)
            task.add_done_callback(self._closed)

    async def end(self) -> None:
        """What is under way may come to its end, within a bound."""
        if self._open:
            await asyncio.wait(self._open, timeout=ENDING_SECONDS)
        await end(self._open)

    def _closed(self, task: "asyncio.Task[None]") -> None:
        self._open.discard(task)
        self._room.release()

    async def _serve(self, accepted: socket.socket, leading: Door) -> None:
        with contextlib.closing(accepted), contextlib.suppress(Gone, OSError, asyncio.TimeoutError):
            client = Peer(accepted)
            try:
                await self._exchange(client, leading)
            except Refusal as refusal:
                await refuse(client, refusal)
            await client.linger()

    async def _exchange(self, client: Peer, leading: Door) -> None:
        if len(self._open) > MOST_CONNECTIONS:
            raise Refusal("503 Service Unavailable", f"{MOST_CONNECTIONS} connections are open here: close some")
        request = await head_of(client)
        self._admit(request)
        length = body_length(request)
        with contextlib.closing(await _reached(leading)) as connected:
            await pass_on(request, length, client, Peer(connected), leading.service)

    def _admit(self, request: Head) -> None:
        host, origin = request.one("host") or "", request.one("origin")
        if not self._hosts.knows(host):
            raise _forbidden(f"Host: {host!r} is not allowed: add it to TRAINVITALS_ALLOWED_HOSTS in compose/.env")
        if origin is not None and not is_own(origin, host):
            raise _forbidden(
                f"Origin: {origin!r} is another site than {host!r} and may not ask here: of a proxy in between "
                "set that it passes on the Host that the browser asks for"
            )
        site, mode = request.one("sec-fetch-site") or "", request.one("sec-fetch-mode") or ""
        if is_part_of_another(site, mode):
            raise _forbidden(f"Sec-Fetch-Site: {site!r} may not ask for parts of its page here")


def _forbidden(line: str) -> Refusal:
    # The health check is no news.
    if _ANOTHER_SITE not in line:
        print(line, file=sys.stderr, flush=True)
    return Refusal("403 Forbidden", line)


async def _reached(leading: Door) -> socket.socket:
    try:
        return await within(CONNECT_SECONDS, _connected(leading))
    except (OSError, asyncio.TimeoutError) as error:
        why = str(error) or f"nothing within {CONNECT_SECONDS:g} s"
        raise Refusal("502 Bad Gateway", f"{leading.service} does not answer: make logs tells more ({why})") from error


async def _connected(leading: Door) -> socket.socket:
    """By its name, each time anew: a service that is made again has another address."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(leading.service, leading.beyond, type=socket.SOCK_STREAM)
    family, kind, _, _, address = found[0]
    connecting = socket.socket(family, kind)
    try:
        connecting.setblocking(False)
        await loop.sock_connect(connecting, address)
    except BaseException:
        connecting.close()
        raise
    return connecting
