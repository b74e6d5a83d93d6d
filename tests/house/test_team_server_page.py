"""The page of the team server: its commands run as they stand there, on a real database."""

import json
import re
import shlex
from pathlib import Path

from tests.cli.conftest import Outcome, run_process
from tests.engines import postgres_url as postgres_url
from tests.house.source import ROOT
from tests.server.test_process import STORE, running

PAGE = (ROOT / "docs" / "how-to" / "team-server.md").read_text("utf-8")
BLOCKS = [
    re.findall(r"^\$ lore (.+)$", block, re.MULTILINE)
    for block in re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
]


def test_the_commands_of_the_page_do_what_it_says(tmp_path: Path, postgres_url: str):
    people, moves, sharing, upkeep, (restore,) = BLOCKS

    def run(command: str, **env: str) -> Outcome:
        environ = {"HOME": str(tmp_path), "LORE_HOME": str(tmp_path / "home"),
                   "LORE_STORE_URL": postgres_url, **env}  # fmt: skip
        return run_process(*shlex.split(command), env=environ, cwd=tmp_path)

    done = [run(command) for command in people]
    assert [one.err for one in done if one.code] == []
    ann, ben, _operator = (one.out.strip() for one in done if one.out.startswith("lore_"))
    assert "ann-laptop" in done[-1].out
    with running(tmp_path / "data", url=postgres_url) as server:
        address = {"LORE_SERVER_URL": f"http://127.0.0.1:{server.port}"}
        status, stored = server.ask("POST", STORE, ann, {"content": "The gate opens at six."})
        assert status == 200
        publish, listing, approve, withdraw = sharing
        id_ = stored["data"]["id"]
        published = run(f"{publish.replace('ID', id_)} --json", **address, LORE_SERVER_KEY=ann)
        assert published.code == 0, published.err
        id_ = json.loads(published.out)["id"]
        assert "pending" in run(listing, **address, LORE_SERVER_KEY=ben).out
        assert run(approve.replace("ID", id_), **address, LORE_SERVER_KEY=ann).code == 2
        assert "approved" in run(approve.replace("ID", id_), **address, LORE_SERVER_KEY=ben).out
        assert "withdrawn" in run(withdraw.replace("ID", id_), **address, LORE_SERVER_KEY=ann).out
        login = run(f"open --server {address['LORE_SERVER_URL']} --print", LORE_SERVER_KEY=ann)
        assert "/login?ticket=" in login.out
        backup, *rest = upkeep
        assert run(backup).code == 0
    count, to_postgres, to_files = moves
    assert "already" in run(to_postgres).out
    for command in (to_files, count, to_postgres):
        moved = run(command)
        assert moved.code == 0, moved.err
        assert "ann" in moved.out
    for command in rest:
        assert run(command).code == 0
    restored = run(restore)
    assert restored.code == 0, restored.err
    with running(tmp_path / "restored", url=postgres_url) as server:
        assert server.texts(ann) == {"The gate opens at six."}
        assert server.ask("GET", "/status", ben)[0] == 200  # removed after the backup was made
