"""The head of an HTTP/1 message as the gate takes it: one meaning or none, so that nobody can smuggle by it.

request(b"GET / HTTP/1.1\\r\\nHost: localhost:9090").one("host")          ->  "localhost:9090"
request(b"GET / HTTP/1.1\\nHost: x")                                    ->  Refusal: 400 …
"""

import re
from typing import NamedTuple

_REQUEST = re.compile(r"[A-Z]{1,20} /[!-~]* HTTP/1\.[01]")
_ANSWER = re.compile(r"HTTP/1\.[01] ([1-5]\d\d)( [\t -~\x80-\xff]*)?")
# A line that goes on with the next one, a space before the colon, control signs: servers do not read them alike.
_FIELD = re.compile(r"([!#$%&'*+.^_`|~\w-]+):([\t -~\x80-\xff]*)", re.ASCII)
_LENGTH = re.compile(r"[0-9]{1,15}")
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,12})(;[\t -~]*)?\r\n")
_ONCE = ("host", "origin", "content-length", "transfer-encoding")
# Of this connection, not of the one beyond.
_OF_HOP = {"connection", "keep-alive", "proxy-connection", "te", "upgrade", "http2-settings"}
_OF_CORS = "access-control-"


class Refusal(Exception):
    """What is answered in place of passing it on."""

    def __init__(self, status: str, line: str) -> None:
        super().__init__(line)
        self.status, self.line = status, line


class Head(NamedTuple):
    first: str
    fields: tuple[tuple[str, str], ...]

    def one(self, name: str) -> str | None:
        return next((value for key, value in self.fields if key.lower() == name), None)

    def passed_on(self, *more: str) -> bytes:
        """As it goes beyond: on a connection of its own that ends with it, and with no word on other sites."""
        kept = [f"{key}: {value}" for key, value in self.fields
                if key.lower() not in _OF_HOP and not key.lower().startswith(_OF_CORS)]  # fmt: skip
        return "\r\n".join([self.first, *kept, "Connection: close", *more, "", ""]).encode("latin-1")


def request(raw: bytes) -> Head:
    head = _parsed(raw)
    names = [key.lower() for key, _ in head.fields]
    if not _REQUEST.fullmatch(head.first):
        raise _malformed("the first line is none of METHOD /path HTTP/1.1")
    for name in _ONCE:
        if names.count(name) > 1:
            raise _malformed(f"{name} stands there more than once")
    return head


def answer(raw: bytes) -> Head:
    """ValueError where it is none that can be passed on."""
    try:
        head = _parsed(raw)
    except Refusal as error:
        raise ValueError(str(error)) from error
    # Another protocol was not asked for.
    if status(head) == 101:
        raise ValueError(head.first)
    return head


def status(head: Head) -> int:
    found = _ANSWER.fullmatch(head.first)
    if not found:
        raise ValueError(head.first[:80])
    return int(found[1])


def body_length(head: Head) -> int | None:
    """None where it comes in chunks."""
    encoding, length = head.one("transfer-encoding"), head.one("content-length")
    if encoding is None:
        if length is not None and not _LENGTH.fullmatch(length):
            raise _malformed("Content-Length is no number")
        return int(length or 0)
    if length is not None:
        raise _malformed("Content-Length and Transfer-Encoding cannot be there both")
    if encoding.lower() != "chunked" or head.first.endswith("1.0"):
        raise _malformed("of Transfer-Encoding, chunked alone is known, with HTTP/1.1")
    return None


def chunk_length(line: bytes) -> int:
    found = _CHUNK.fullmatch(line)
    if not found:
        raise _malformed("a chunk does not begin with its length")
    return int(found[1], 16)


def _malformed(why: str) -> Refusal:
    return Refusal("400 Bad Request", f"This request is not passed on: {why}")


def _parsed(raw: bytes) -> Head:
    first, *lines = raw.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    found = [_FIELD.fullmatch(line) for line in lines]
    fields = tuple((match[1], match[2].strip(" \t")) for match in found if match)
    if len(fields) != len(found):
        raise _malformed("a header is not as HTTP has it")
    return Head(first, fields)
