"""What the scripted upstream is asked and what it answers, apart from any wire format."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

Wire = Literal["messages", "responses", "chat"]
Place = Literal["prompt", "system"]
Speaker = Literal["person", "agent", "client"]
"""Who sets a cue: the person, an agent or program in the person's place, or the client for a
request of its own that is no turn of the talk."""


class Refused(Exception):
    """The request breaks a rule of the wire format; a real provider answers 400."""


class Unscripted(Exception):
    """No scene has an answer to this request."""


@dataclass(frozen=True, slots=True)
class Call:
    """A tool that the model calls.

    Only Responses has tools in a `namespace`, and `freeform` ones whose input is a text.
    """

    name: str
    input: Mapping[str, object] = field(default_factory=dict)
    freeform: str = ""
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong the first `times` that a reply is asked for.

    With a status alone it is an error, with a number of events alone the stream is cut after
    them, and with both the error comes inside the stream.
    """

    status: int = 0
    cut_after_events: int = 0
    times: int = 1
    message: str = ""
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer of the model."""

    text: str = ""
    thinking: str = ""
    calls: tuple[Call, ...] = ()
    fault: Fault | None = None
    pause_s: float = 0.0
    """Between two events of the stream, so that somebody can interrupt it."""

    headers: tuple[tuple[str, str], ...] = ()
    """Beside the usual ones: limits, say."""

    input_tokens: int | None = None
    """Reported instead of the counted ones, so that a client believes its window full."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a tool answered, as the client told the model."""

    call_id: str
    text: str
    failed: bool | None = None
    """Only Anthropic Messages tells."""


Made = Callable[[tuple[Result, ...]], Reply]
"""A reply made from the results of tools since the prompt, where a call needs one of them."""


@dataclass(frozen=True, slots=True)
class Scene:
    """A prompt and the replies to it; each but the last calls tools.

    The cue is looked for in what the person said, or in the system prompt for the requests
    that clients make on their own account: titles, summaries.
    """

    cue: str
    replies: tuple[Reply | Made, ...]
    speaker: Speaker = "person"
    place: Place = "prompt"


@dataclass(frozen=True, slots=True)
class Turn:
    """A message of a request: its texts, and the results of tools in it."""

    role: Literal["user", "assistant"]
    texts: tuple[str, ...] = ()
    results: tuple[Result, ...] = ()


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as every wire says it; `blocks` are what prefix caching goes by."""

    wire: Wire
    model: str
    stream: bool
    system: str
    turns: tuple[Turn, ...]
    blocks: tuple[str, ...]
    breakpoints: tuple[int, ...]
    thinking: bool = False
    usage_wanted: bool = True


@dataclass(frozen=True, slots=True)
class Chosen:
    """A reply and where in the script it stands."""

    scene: Scene
    step: int
    reply: Reply


def choose(scenes: tuple[Scene, ...], asked: Asked) -> Chosen:
    """Find the reply to a request by its prompt and the tool results after it.

    Nothing is remembered between requests, so a retry and a resumed session get the same reply.
    """
    for scene in scenes:
        if scene.place == "system" and scene.cue in asked.system:
            return reply_after(scene, ())
    later: list[Result] = []
    for turn in reversed(asked.turns):
        if turn.role != "user":
            continue
        cued = find_scene(scenes, turn)
        if cued:
            return reply_after(cued, tuple(reversed(later)))
        later += reversed(turn.results)
    problem = "no scene has this prompt"
    raise Unscripted(problem)


def find_scene(scenes: tuple[Scene, ...], turn: Turn) -> Scene | None:
    for text in reversed(turn.texts):
        for scene in scenes:
            if scene.place == "prompt" and scene.cue in text:
                return scene
    return None


def reply_after(scene: Scene, results: tuple[Result, ...]) -> Chosen:
    expected = 0
    for step, made in enumerate(scene.replies):
        reply = made if isinstance(made, Reply) else made(results)
        if expected == len(results):
            return Chosen(scene, step, reply)
        expected += len(reply.calls)
    problem = f"no reply after {len(results)} results to: {scene.cue[:80]}"
    raise Unscripted(problem)
