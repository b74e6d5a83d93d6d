"""A browser that is logged in: it has a cookie, and sends the headers that browsers send."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from tests.http_api.live_server import Reply, Served


@dataclass(frozen=True)
class Browser:
    """A logged-in browser of a server."""

    served: Served
    cookie: str

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.served.port}"

    def get(self, path: str, **headers: str) -> Reply:
        """Read something of the API, or a page if the path is absolute with its server."""
        spelt = {name.replace("_", "-"): value for name, value in headers.items()}
        place = path.removeprefix("page:") if path.startswith("page:") else f"/api/v1{path}"
        usual = {"cookie": self.cookie, "sec-fetch-site": "same-origin"}
        return self.served.ask("GET", place, headers={**usual, **spelt})

    def send(self, path: str, tree: object, *, origin: str | None = None) -> Reply:
        """Send JSON to the API; an empty origin is none."""
        headers = {
            "cookie": self.cookie,
            "content-type": "application/json",
            "origin": self.origin if origin is None else origin,
        }
        if not headers["origin"]:
            del headers["origin"]
        return self.served.ask(
            "POST", f"/api/v1{path}", headers=headers, body=json.dumps(tree).encode()
        )

    def post(self, path: str, **tree: object) -> Any:
        """Send JSON to the API and return what comes back; it must succeed."""
        reply = self.send(path, tree)
        assert reply.status == 200, reply.body
        return reply.json


def log_in(served: Served) -> Browser:
    """Return a browser that used a ticket."""
    reply = served.ask("GET", f"/login?ticket={served.logins.make_ticket()}")
    assert reply.status == 303
    return Browser(served, reply.headers["set-cookie"].partition(";")[0])
