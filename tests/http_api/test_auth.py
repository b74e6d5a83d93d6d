from __future__ import annotations

import threading
from pathlib import Path

import pytest

from lore.http.auth import ensure_local_key
from lore.memory import Memory
from lore.proxy.address import KEY_FILE
from lore.records import Grant
from tests.http_api.live_server import Served


def test_the_key_of_a_home_is_made_once_and_for_its_owner_only(tmp_path: Path):
    made = ensure_local_key(tmp_path)
    assert len(made) >= 43
    assert ensure_local_key(tmp_path) == made
    assert (tmp_path / KEY_FILE).stat().st_mode & 0o777 == 0o600


def test_of_many_who_make_the_key_at_once_all_get_the_same(tmp_path: Path):
    made: list[str] = []
    threads = [
        threading.Thread(target=lambda: made.append(ensure_local_key(tmp_path))) for _ in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 16
    assert len(set(made)) == 1
    assert [path.name for path in tmp_path.iterdir()] == [KEY_FILE]


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o606])
def test_a_key_that_others_could_read_is_replaced(tmp_path: Path, mode: int):
    before = ensure_local_key(tmp_path)
    (tmp_path / KEY_FILE).chmod(mode)
    assert ensure_local_key(tmp_path) != before
    assert (tmp_path / KEY_FILE).stat().st_mode & 0o777 == 0o600


def test_a_link_in_the_place_of_the_key_is_not_followed(tmp_path: Path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("x" * 60)
    elsewhere.chmod(0o600)
    home = tmp_path / "home"
    home.mkdir()
    (home / KEY_FILE).symlink_to(elsewhere)
    assert ensure_local_key(home) != "x" * 60
    assert elsewhere.read_text() == "x" * 60


@pytest.mark.parametrize("content", [b"", b"short", b"\xff" * 60])
def test_what_cannot_be_a_key_is_replaced(tmp_path: Path, content: bytes):
    (tmp_path / KEY_FILE).write_bytes(content)
    (tmp_path / KEY_FILE).chmod(0o600)
    assert len(ensure_local_key(tmp_path)) >= 43


def test_admin_opens_everything_and_nothing_else_does():
    assert Grant("a", frozenset({"admin"})).allows("read", "write", "push")
    assert not Grant("a", frozenset({"read", "push"})).allows("read", "write")


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


@pytest.mark.parametrize("header", ["authorization", "x-lore-key"])
def test_the_local_key_opens_by_either_header(served: Served, header: str):
    value = f"bearer {served.key}" if header == "authorization" else served.key
    assert served.ask("GET", "/api/v1/stats", headers={header: value}).status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": "Bearer"},
        {"authorization": "Bearer "},
        {"authorization": "Bearer wrong"},
        {"authorization": "Basic bG9yZTpsb3Jl"},
        {"x-lore-key": ""},
        {"x-lore-key": "lore_0123456789_x"},
        {"x-lore-key": "lore__"},
        {"cookie": "lore=1"},
        {"authorization": "Bearer \xe4\xf6"},
    ],
)
def test_nothing_opens_without_a_valid_key(served: Served, headers: dict[str, str]):
    reply = served.ask("GET", "/api/v1/stats", headers=headers)
    assert reply.status == 401
    assert reply.headers["www-authenticate"].startswith("Bearer")
    assert reply.json["code"] == "Unauthorized"


def test_a_wrong_key_is_not_helped_by_a_right_one_in_another_header(served: Served):
    headers = {"authorization": "Bearer wrong", "x-lore-key": served.key}
    assert served.ask("GET", "/api/v1/stats", headers=headers).status == 401


def test_a_revoked_key_opens_nothing_at_once(served: Served):
    key, record = served.memory.access.create_key("for a test", scopes=["read"])
    assert served.ask("GET", "/api/v1/stats", headers=bearer(key)).status == 200
    served.memory.access.revoke_key(record.prefix)
    assert served.ask("GET", "/api/v1/stats", headers=bearer(key)).status == 401


def test_who_has_a_key_that_opens_nothing_any_more_is_told_why(served: Served):
    key, record = served.memory.access.create_key("for a test", scopes=["read"])
    served.memory.access.revoke_key(record.prefix)
    brief, _ = served.memory.access.create_key("brief", expires_in_s=0)
    for shown, told in ((key, "was revoked"), (brief, "expired")):
        assert told in served.ask("GET", "/api/v1/stats", headers=bearer(shown)).json["detail"]


def test_who_has_only_the_prefix_of_a_revoked_key_learns_nothing(served: Served):
    key, record = served.memory.access.create_key("for a test", scopes=["read"])
    served.memory.access.revoke_key(record.prefix)
    guessed = [f"lore_{record.prefix}_x", key[:-1], f"{key}x", "lore_0123456789_x"]
    told = [served.ask("GET", "/api/v1/stats", headers=bearer(one)).json for one in guessed]
    assert all(tree == told[0] for tree in told)
    assert "revoked" not in told[0]["detail"]


def test_a_key_that_another_process_revoked_opens_nothing(served: Served, tmp_path: Path):
    key, record = served.memory.access.create_key("another", scopes=["read"])
    with Memory.open(config=served.memory.settings) as other:
        other.access.revoke_key(record.prefix)
    assert served.ask("GET", "/api/v1/stats", headers=bearer(key)).status == 401


def test_an_expired_key_opens_nothing(served: Served):
    key, _ = served.memory.access.create_key("brief", expires_in_s=0)
    assert served.ask("GET", "/api/v1/stats", headers=bearer(key)).status == 401


@pytest.mark.parametrize(
    ("scopes", "read", "push", "write", "admin"),
    [
        (("read",), 200, 403, 403, 403),
        (("push",), 403, 200, 403, 403),
        (("write",), 403, 403, 200, 403),
        (("read", "write"), 200, 403, 200, 403),
        (("admin",), 200, 200, 200, 200),
    ],
)
def test_a_key_opens_what_its_scopes_say(
    served: Served, scopes: tuple[str, ...], read: int, push: int, write: int, admin: int
):
    key, _ = served.memory.access.create_key("scoped", scopes=scopes)  # type: ignore[arg-type]
    headers = {**bearer(key), "content-type": "application/json"}

    def post(path: str, body: bytes) -> int:
        return served.ask("POST", path, headers=headers, body=body).status

    assert served.ask("GET", "/api/v1/stats", headers=headers).status == read
    pushed = b'{"session": "s", "messages": [{"role": "user", "text": "hello", "key": "1"}]}'
    assert post("/api/v1/capture", pushed) == push
    assert post("/api/v1/consolidate", b'{"dry_run": true}') == write
    assert post("/api/v1/logins", b"") == admin
