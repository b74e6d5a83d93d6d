from __future__ import annotations

from lore.http.auth import TICKET_S
from tests.http_api.live_server import Served


def test_a_ticket_is_a_path_that_opens_once(served: Served):
    made = served.post("/api/v1/logins", {}).json
    assert made["expires_in_s"] == TICKET_S
    assert served.ask("GET", made["path"]).status == 303
    assert served.ask("GET", made["path"]).status == 401


def test_only_who_may_do_all_makes_tickets(served: Served):
    key, _ = served.memory.access.create_key("guest", scopes=("read", "write", "push"))
    headers = {"x-lore-key": key, "content-type": "application/json"}
    assert served.ask("POST", "/api/v1/logins", headers=headers, body=b"{}").status == 403
