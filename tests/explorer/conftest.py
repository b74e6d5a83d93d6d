"""One served memory for each test process, one browser for each test file."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.explorer.site import Site, fill, serving
from tests.homes import copy_home, make_once

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from tests.explorer.window import Visitor

BUILD = Path(__file__).parents[2] / "explorer" / "build.py"


@pytest.fixture(scope="session")
def furnished_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a home with all that pages show; only to be copied."""
    spec = importlib.util.spec_from_file_location("explorer_build", BUILD)
    assert spec
    assert spec.loader
    build = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(build)
    if not build.is_current():
        pytest.skip("The explorer is not built from these sources: python explorer/build.py")
    return make_once(tmp_path_factory, "explorer", fill)


@pytest.fixture(scope="session")
def site(furnished_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Serve the furnished memory; whoever changes something adds it first."""
    home = copy_home(furnished_home, tmp_path_factory.mktemp("site") / "home")
    with serving(home) as served:
        yield served


@pytest.fixture
def own_site(furnished_home: Path, tmp_path: Path) -> Iterator[Site]:
    """Serve a copy of the furnished memory for one test alone."""
    with serving(copy_home(furnished_home, tmp_path / "home")) as served:
        yield served


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """Return a browser; it ends with its file, since others cannot use asyncio beside it."""
    from tests.explorer import window

    with window.chromium() as browser:
        yield browser


@pytest.fixture
def visitor(chromium: Browser, site: Site) -> Iterator[Visitor]:
    """Return a visitor of the shared memory; at the end nothing must have gone wrong."""
    from tests.explorer.window import Visitor

    one = Visitor(chromium, site)
    yield one
    one.check()


@pytest.fixture
def own_visitor(chromium: Browser, own_site: Site) -> Iterator[Visitor]:
    """Return a visitor of a memory of its own."""
    from tests.explorer.window import Visitor

    one = Visitor(chromium, own_site)
    yield one
    one.check()


@pytest.fixture(scope="session")
def artifacts() -> Path | None:
    """Return the folder that screenshots are kept in, if there is one."""
    name = os.environ.get("LORE_TEST_ARTIFACTS")
    if not name:
        return None
    folder = Path(name)
    folder.mkdir(parents=True, exist_ok=True)
    return folder
