"""Wire: what the gateway needs of the API that a client speaks; one module for each does it.

All of it is pure: bytes and plans in, bytes and records out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from lore.gateway.apis.shapes import Json
from lore.gateway.exchanges import Answer
from lore.records.dialogues import Block, Dialogue, Entry, Plan, TokenUse

MOST_RECALLS = 10
"""How often a model may search memory before it answers a request (the specification's)."""

FindMarker = Callable[[str], str | None]
"""Returns what was stored under the id of a marker, or None."""

MakeId = Callable[[], str]
"""Returns an id that nobody can guess, of letters and digits."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request that was read: the bytes as they came, and what they say."""

    body: bytes
    document: Json
    dialogue: Dialogue
    places: tuple[tuple[int, int], ...]
    """Of each entry, from which to which item of the wire's list it reaches."""
    streams: bool = False
    tools: frozenset[str] = frozenset()
    is_expanded: bool = False
    """The document says more than the body: calls of recall stand where markers were."""
    has_history: bool = True
    """All that was said is in it; some clients leave their history with the provider."""
    may_recall: bool = True
    """Its answer can be spliced: it is one, in a form that is read while it comes."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that the gateway offers to the model by itself."""

    name: str
    description: str
    schema: Json


def as_it_is(block: Block) -> str:
    """Return the text of a result, in the place of an annotation."""
    return block.text


@dataclass(frozen=True, slots=True)
class Texts:
    """What a prompt says beside the client's words."""

    knowledge: str = ""
    """Stands at the end of the system prompt, the same from turn to turn."""
    notes: Mapping[str, str] = field(default_factory=dict)
    """Stand at the end of a user's entry, by its key, from then on."""
    annotate: Callable[[Block], str] = as_it_is
    """Returns what stands in the place of an old result."""
    recall: Tool | None = None


@dataclass(frozen=True, slots=True)
class Fault:
    """Why an upstream gave no answer; the sizes are told where the prompt was too long."""

    kind: str
    message: str
    is_too_long: bool = False
    prompt_tokens: int = 0
    most_tokens: int = 0


_NOTHING = TokenUse()


@dataclass(frozen=True, slots=True)
class Reply:
    """What an upstream answered."""

    entry: Entry | None = None
    use: TokenUse = _NOTHING
    stop: str = ""
    """Why it ended; empty where it broke off before."""
    fault: Fault | None = None
    chars: int = 0
    """How much the model has written, as far as that came: what was not said in the end, too."""
    service: str = ""
    """The service that it was answered with, where the provider has dearer and cheaper ones."""
    goes_on: bool = False
    """The model writes it in the background, whether or not anybody waits for it."""
    fetched_by: str = ""
    """The id that such a one is asked for by later."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call of recall that the gateway carries out."""

    id: str
    marker: str
    arguments: Json


class ReplyReader(Protocol):
    """Reads one answer of an upstream while it passes."""

    def feed(self, chunk: bytes) -> None:
        """Take the next piece of the answer."""

    def end(self) -> Reply:
        """Return what the answer was, when it has ended or broken off."""


class Splice(Protocol):
    """Makes one answer of several: those in which the model calls recall, and the last.

    For each answer of the upstream: `feed` its pieces, then `pause`, and send what both return.
    Then carry out `calls`, give their results to `answer` and keep what it returns; if
    `goes_on`, ask the upstream with `follow_up` and begin again.
    """

    def feed(self, chunk: bytes) -> bytes:
        """Take the next piece of an answer, and return what the client gets now."""

    @property
    def is_idle(self) -> bool:
        """Tell whether all of a stream passed as it came: nothing in it names the tool."""

    def pause(self) -> bytes:
        """Take note that an answer has ended, and return what the client gets now."""

    @property
    def calls(self) -> tuple[Call, ...]:
        """Return the calls to be carried out now."""

    @property
    def goes_on(self) -> bool:
        """Tell whether the upstream has to be asked again before the answer is complete."""

    def answer(self, results: Mapping[str, str]) -> dict[str, str]:
        """Take results by the ids of calls; return what is to be stored, by the ids of markers."""

    def follow_up(self) -> bytes:
        """Return the body of the next request to the upstream."""

    def fail(self, status: int, body: bytes) -> bytes:
        """Return what ends the answer where the upstream did not go on, in its own words."""


class Wire(Protocol):
    """An API that clients speak."""

    def read(self, body: bytes, path: str = "") -> Request:
        """Read a request to a path, or raise `InvalidInput` if it has another shape."""

    def expand(self, request: Request, find: FindMarker) -> Request:
        """Put calls of recall and their results back where markers stand."""

    def rewrite(self, request: Request, plan: Plan, texts: Texts) -> bytes:
        """Return the prompt by a plan; the very bytes of the client where nothing changes.

        Raises `InvalidInput` where the plan would make a prompt that no upstream takes.
        """

    def open_reader(self, *, streams: bool) -> ReplyReader:
        """Return a reader of one answer."""

    def answer(self, request: Request, text: str) -> Answer:
        """Say a text in the place of the model."""

    def open_splice(self, request: Request, body: bytes, tool: Tool, make_id: MakeId) -> Splice:
        """Return what joins the answers to a request, whose body was sent as this one."""
