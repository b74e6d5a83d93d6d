"""Every public method answers, or says what is wrong with its arguments."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lore import Draft, Memory, NewMessage, Part
from lore.embed.embedder import NoEmbedder
from lore.errors import InvalidInput, LoreError
from lore.memory.access import Access
from lore.memory.budget import Budget
from lore.memory.digest import Digest
from lore.memory.knowledge import Knowledge
from lore.memory.maintenance import Maintenance
from lore.memory.prompts import Prompts
from lore.memory.search import Search
from lore.memory.sessions import Sessions
from lore.validation import Count, validate_arguments
from tests.fakes import NOON

PARTS = {
    "access": Access, "budget": Budget, "digest": Digest, "knowledge": Knowledge,
    "maintenance": Maintenance, "prompts": Prompts, "search": Search, "sessions": Sessions,
}  # fmt: skip
OF_FILES = {"capture_files", "estimate_capture", "backup", "share", "plan_share", "read_shared"}
"""They would read and write the files of whoever runs the tests."""

METHODS = {
    f"{part}.{name}": method
    for part, kind in PARTS.items()
    for name, method in vars(kind).items()
    if inspect.isfunction(method) and not name.startswith("_") and name not in OF_FILES
}
PARAMETERS = {
    name: list(inspect.signature(method).parameters)[1:] for name, method in METHODS.items()
}
MEANT: dict[str, Any] = {
    "drafts": [], "new": [], "id": "0" * 8, "source": "0" * 8, "target": None, "kind": "fact",
    "old": "0" * 8, "ids": [], "lines": [],
}  # fmt: skip
"""What suits a parameter for which some text does not."""

MESSAGES = st.builds(
    NewMessage,
    st.sampled_from(["user", None, 1]),
    st.one_of(st.just(None), st.lists(st.builds(Part, st.just("text"), st.sampled_from(["x", 3])))),
    st.one_of(st.datetimes(), st.datetimes(timezones=st.just(UTC)), st.just("today")),
)
WRONG = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.binary(max_size=5), st.just("x"),
    st.lists(st.one_of(st.none(), st.integers(), st.text(max_size=3)), max_size=3), st.datetimes(),
    st.dictionaries(st.integers(), st.none(), max_size=2), st.just(object()), st.just(Memory),
    st.just(10**5000), st.just("\ud800"), st.lists(MESSAGES, max_size=2), MESSAGES,
    st.lists(st.builds(Draft, st.sampled_from(["x", None]), st.sampled_from(["", 1])), max_size=2),
)  # fmt: skip


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    home = tmp_path_factory.mktemp("home")
    with Memory.open(home=home, embedder=NoEmbedder()) as opened:
        opened.store("x marks the spot")
        yield opened


@pytest.mark.parametrize("method", PARAMETERS)
@given(data=st.data())
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_method_answers_or_raises_invalid_input(
    memory: Memory, method: str, data: st.DataObject
) -> None:
    names = PARAMETERS[method]
    if not names:
        return
    changed = data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True))
    required = [n for n in names if _is_required(method, n)]
    arguments = {name: MEANT.get(name, "x") for name in required}
    for name in changed:
        # a file of any name would be written, and what a callback raises is the caller's
        if name not in ("target", "progress", "stopping"):
            arguments[name] = data.draw(WRONG, label=name)
    with suppress(LoreError):
        attrgetter(method)(memory)(**arguments)


def _is_required(method: str, name: str) -> bool:
    default = inspect.signature(METHODS[method]).parameters[name].default
    return default is inspect.Parameter.empty


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda m: m.recall(None), "recall() takes a text as 'query', not None."),
        (lambda m: m.recall("x", limit=-1), "a whole number of at least 1 or None as 'limit', not"),
        (lambda m: m.recall("x", now=datetime(2026, 5, 1)), "a datetime with a time zone"),  # noqa: DTZ001
        (lambda m: m.budget.load_prices(wait_s=1e30), "between 0 and 1e+09 as 'wait_s', not 1e+30"),
        (lambda m: m.store("x", importance=float("nan")), "a number as 'importance', not nan."),
        (lambda m: m.read("abc"), "read() takes a list as 'ids', not a value of type str."),
        (lambda m: m.read(["abc", 3]), "read() takes a text as 'ids[1]', not 3."),
        (
            lambda m: m.capture("s", [NewMessage("user", (Part("text", None),), NOON)]),  # type: ignore[arg-type]
            "capture() takes a text as 'new[0].parts[0].text', not None.",
        ),
        (lambda m: m.knowledge.store_all(iter([Draft("x"), "y"])), "A Draft was expected at [1]"),
        (lambda m: m.store("x", payload={1: 2}), "a text as 'payload[1]', not 1"),
        (lambda m: m.sessions.export(3), "export() takes"),
        (lambda m: m.maintenance.backup(3), "backup() takes"),
    ],
)
def test_the_message_names_the_wrong_argument(memory: Memory, call: Any, told: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        call(memory)
    assert told in str(caught.value)


@pytest.mark.parametrize("wrong", [{"home": 3}, {"config": "x"}, {"embedder": 1}, {"now": NOON}])
def test_open_validates_its_arguments(wrong: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"open\(\) takes"):
        Memory.open(**{"home": tmp_path, **wrong})


def test_numbers_of_other_libraries_are_numbers() -> None:
    np = pytest.importorskip("numpy")

    @validate_arguments
    def count(many: Count, share: float = 0.0) -> tuple[int, float]:
        return many, share

    assert count(np.int64(3), np.float32(0.5)) == (3, 0.5)
    assert type(count(np.int64(3))[0]) is int


def test_a_missing_argument_raises_type_error(memory: Memory) -> None:
    with pytest.raises(TypeError, match="query"):
        memory.recall()  # type: ignore[call-arg]


def test_a_datetime_out_of_range_in_utc_is_refused(tmp_path):
    far = datetime.fromisoformat("9999-12-31T23:59:59-12:00")
    new = NewMessage("user", (Part("text", "a"),), far)
    with Memory.open(tmp_path, embedder=NoEmbedder()) as memory:
        with pytest.raises(InvalidInput, match="far away"):
            memory.capture("s", [new])
        assert memory.sessions() == []
