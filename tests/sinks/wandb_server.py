"""As much of a W&B server as its client needs to upload and to resume a run, on loopback."""

import gzip
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_PROJECT = {"id": "1", "internalId": "1", "name": "p", "entity": {"id": "1", "name": "me"}}


class Server(ThreadingHTTPServer):
    """`history` is what was uploaded, a JSON text a line."""

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.history: list[str] = []

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def answer(self, query: str, name: str) -> dict[str, Any]:
        count = len(self.history)
        bucket = {"id": "2", "name": name, "displayName": name, "description": "", "config": "{}", "sweepName": None,
                  "project": _PROJECT, "historyLineCount": count, "summaryMetrics": "{}", "logLineCount": 0,
                  "eventsLineCount": 0, "historyTail": json.dumps(self.history[-1:]), "eventsTail": "[]", "tags": [],
                  "notes": "", "wandbConfig": '{"t":1}'}  # fmt: skip
        answers = {
            "query Viewer": {"viewer": {"id": "1", "entity": "me", "flags": "{}", "teams": {"edges": []}}},
            "mutation UpsertBucket": {"upsertBucket": {"bucket": bucket, "inserted": not count}},
            "query RunResumeStatus": {"model": _PROJECT | {"bucket": bucket if count else None}},
            "mutation CreateRunFiles": {"createRunFiles": {"runID": "2", "uploadHeaders": [], "files": []}},
            "query RunHistoryKeys": {"project": {"run": {"historyKeys": {"lastStep": count - 1}}}},
            "query Run(": {"project": _PROJECT | {"run": bucket | {"state": "running", "internalId": "2"}}},
        }
        return next((found for start, found in answers.items() if start in query), {})

    def upload(self, files: dict[str, Any]) -> None:
        if told := files.get("wandb-history.jsonl"):
            at, lines = told["offset"], told["content"]
            self.history[at : at + len(lines)] = lines


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Content-Encoding") == "gzip":
            content = gzip.decompress(content)
        told = json.loads(content or "{}")
        if self.path == "/graphql":
            variables = told.get("variables") or {}
            self._reply({"data": self.server.answer(told["query"], variables.get("name") or "")})
        else:
            self.server.upload(told.get("files") or {})
            self._reply({})

    def log_message(self, *_: object) -> None:
        """Nothing."""

    def _reply(self, answer: dict[str, Any]) -> None:
        content = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@contextmanager
def serving(server: Server) -> Iterator[Server]:
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
