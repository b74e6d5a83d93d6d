"""No secret reaches the disk, whichever way it comes in."""

import io
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

from lore.memory import Memory
from lore.records import NewMessage, Part
from lore.redaction.redactor import KEY_FILE, open_redactor
from lore.settings import Settings

NOON = datetime(2026, 5, 13, 12, tzinfo=UTC)
BODY = "Zq7Rw2Lk9Xv4Bn6Tm1Pd8Hs3Jf5Gc0Ya"


def canary(name: str) -> str:
    return f"ghp_{name}{BODY}"


def open_memory(home: Path, *, redact: bool = True) -> Memory:
    config = Settings(home=home, embed_provider="none", capture_redact=redact)
    return Memory.open(config=config)


def fill(memory: Memory) -> None:
    parts = (
        Part("text", f"use {canary('aa')} and password=Tr0ub4dor&3zz"),
        Part("tool_call", f'{{"token": "{canary("ab")}"}}', canary("ac"), canary("ad")),
        Part("tool_result", f"export T={canary('ae')}", "", canary("ad")),
        Part("reasoning", canary("af")),
    )
    said = [
        NewMessage("user", parts, NOON, canary("ag"), canary("ah"), model=canary("ai")),
        NewMessage("user", (Part("text", canary("aj")),), NOON),
    ]
    memory.capture(
        canary("ak"), said, agent=canary("al"), project=f"/code/{canary('am')}",
        title=canary("an"), branch=canary("ao"), files=[f"a/{canary('ap')}.py"],
    )  # fmt: skip
    payload = {"password": "Tr0ub4dor&3zz", canary("ar"): [{"x": canary("as")}]}
    first = memory.store(canary("at"), summary=canary("au"), payload=payload, key=canary("av"))
    second = memory.store("plain words", project=f"/code/{canary('am')}")
    memory.knowledge.update(first, canary("aw"), summary=canary("ax"), reason=canary("ay"))
    memory.knowledge.link(first, second, "supports", note=canary("az"))
    memory.recall(canary("ba"))
    memory.search(canary("bb"))
    memory.search.find_sessions(canary("bc"))


def bytes_below(home: Path) -> bytes:
    return b"\n".join(path.read_bytes() for path in home.rglob("*") if path.is_file())


def test_no_canary_is_found_in_any_byte_of_the_home(tmp_path: Path):
    with open_memory(tmp_path / "home") as memory:
        fill(memory)
        memory.maintenance.backup()
        found = bytes_below(tmp_path / "home")
        assert memory.recall("use password").hits
    found += bytes_below(tmp_path / "home")
    assert BODY.encode() not in found
    assert b"Tr0ub4dor" not in found
    assert b"[secret:github:" in found


def test_an_import_is_redacted_too(tmp_path: Path):
    with open_memory(tmp_path / "loose", redact=False) as loose:
        fill(loose)
        stream = io.BytesIO()
        loose.sessions.export(stream)
    assert BODY.encode() in stream.getvalue()
    with open_memory(tmp_path / "home") as memory:
        counts = memory.sessions.import_lines(stream.getvalue().splitlines(), trust=True)
        assert counts.added
    found = bytes_below(tmp_path / "home")
    assert BODY.encode() not in found
    assert b"Tr0ub4dor" not in found


def test_a_secret_is_found_again_by_its_mark(tmp_path: Path):
    with open_memory(tmp_path) as memory:
        id_ = memory.store(f"the deploy key is {canary('aa')}")
        memory.store("something else")
        assert memory.search(canary("aa"))[0].id == id_


def key_of(home: Path) -> bytes:
    open_redactor(Settings(home=home))
    return (home / KEY_FILE).read_bytes()


def test_processes_that_start_at_once_share_one_key(tmp_path: Path):
    with ProcessPoolExecutor(4) as pool:
        keys = set(pool.map(key_of, [tmp_path] * 8))
    assert len(keys) == 1
    assert len(keys.pop()) == 32
    assert (tmp_path / KEY_FILE).stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == [KEY_FILE]


def test_a_key_that_was_cut_off_is_made_anew(tmp_path: Path):
    (tmp_path / KEY_FILE).write_bytes(b"")
    assert len(key_of(tmp_path)) == 32


def test_plain_messages_keep_every_word(tmp_path: Path):
    with open_memory(tmp_path) as memory:
        said = "Rotate the token, then pass the key to deploy(password=password)."
        memory.capture("talk", [NewMessage("user", (Part("text", said),), NOON)])
        stored = memory.sessions.messages("talk")
    assert stored[0].parts[0].text == said


def test_a_session_and_a_project_are_found_by_the_name_that_was_redacted(tmp_path: Path):
    with open_memory(tmp_path) as memory:
        said = [NewMessage("user", (Part("text", "we bake bread at noon"),), NOON)]
        session, project = f"run {canary('aa')}", f"/code/{canary('ab')}"
        memory.capture(session, said, project=project)
        assert len(memory.sessions.messages(session)) == 1
        assert len(memory.sessions(project=project)) == 1
        assert memory.recall("bread", session=session, project=project).hits
        assert memory.search.find_sessions("bread", project=project)
        assert memory.maintenance.preview_forget(session=session).count
