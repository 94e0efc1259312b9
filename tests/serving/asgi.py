"""An ASGI application spoken to without a socket."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass


@dataclass
class Answer:
    """What the application answered."""

    status_code: int
    content: bytes

    @property
    def text(self):
        return self.content.decode()

    def json(self):
        return json.loads(self.content)


class Client:
    """Sends requests to an application that it starts and stops, as a server would."""

    def __init__(self, app):
        self.app = app

    def __enter__(self):
        self._runner = asyncio.Runner()
        self._runner.run(self._start())
        return self

    def __exit__(self, *_):
        self._runner.run(self._stop())
        self._runner.close()

    async def _start(self):
        self._to_app, self._from_app = asyncio.Queue(), asyncio.Queue()
        scope = {"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}
        self._life = asyncio.create_task(self.app(scope, self._to_app.get, self._from_app.put))
        await self._to_app.put({"type": "lifespan.startup"})
        assert (await self._from_app.get())["type"] == "lifespan.startup.complete"

    async def _stop(self):
        await self._to_app.put({"type": "lifespan.shutdown"})
        assert (await self._from_app.get())["type"] == "lifespan.shutdown.complete"
        await self._life

    def get(self, path):
        return self.request("GET", path)

    def post(self, path, content=b""):
        return self.request("POST", path, content)

    def request(self, method, path, content=b"", chunks=None):
        return self._runner.run(self.send(method, path, chunks or [content]))

    async def send(self, method, path, chunks):
        """Send a body in chunks; a number among them is a pause, None a lost connection."""
        left = list(chunks)
        sent = []

        async def receive():
            while left and isinstance(left[0], float):
                await asyncio.sleep(left.pop(0))
            chunk = left.pop(0) if left else b""
            if chunk is None:
                return {"type": "http.disconnect"}
            return {"type": "http.request", "body": chunk, "more_body": bool(left)}

        async def take(message):
            sent.append(message)

        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "root_path": "",
            "scheme": "http",
            "headers": [(b"host", b"test")],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 2),
            "state": {},
        }
        await self.app(scope, receive, take)
        body = b"".join(one.get("body", b"") for one in sent[1:])
        return Answer(sent[0]["status"], body)
