"""Who is calling: by which Host, and from which page's Origin. The standard library alone, for the stack's gate too.

Hosts(["gpu1.example"]).knows("GPU1.example:8080")          ->  True, as localhost and every address
is_own("http://evil.example", host="localhost:8080")        ->  False
"""

import ipaddress
import re
from collections.abc import Iterable

_WITH_PORT = re.compile(r"\[([^]]*)\](?::\d*)?|([^:]*)(?::\d*)?", re.ASCII)


class Hosts:
    """The names that may be called by. Of another name's page no browser keeps the answer (DNS rebinding)."""

    def __init__(self, allowed: Iterable[str]) -> None:
        self._names = {"localhost", *(_name(host) for host in allowed)}

    def knows(self, host: str) -> bool:
        name = _name(host)
        return name in self._names or _is_address(name)


def is_own(origin: str, host: str) -> bool:
    """Whether the page that asks came from the very place that it asks."""
    return origin.lower() in (f"http://{host}".lower(), f"https://{host}".lower())


def is_part_of_another(site: str, mode: str) -> bool:
    """By Sec-Fetch-Site and -Mode: a picture, a script or such in a page from elsewhere. Links may lead here."""
    return site.lower() in ("cross-site", "same-site") and mode.lower() != "navigate"


def _name(host: str) -> str:
    """`GPU1.example.:8080` and `[::1]:8080` without port, closing dot and capitals."""
    found = _WITH_PORT.fullmatch(host)
    return (found[found.lastindex or 0] if found else host).lower().removesuffix(".")


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
