"""What the scripted upstream is asked and what it answers, apart from any wire format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Wire = Literal["messages", "responses", "chat"]
Place = Literal["prompt", "system"]
Speaker = Literal["person", "agent", "client"]
"""Who sets a cue: the person, an agent that sends another one, or the client by itself."""


class Refused(Exception):
    """The request breaks a rule of the wire format; a real provider answers 400."""


class Unscripted(Exception):
    """No scene has an answer to this request."""


@dataclass(frozen=True, slots=True)
class Call:
    """A tool that the model calls; `freeform` is the Responses kind whose input is a text."""

    name: str
    input: Mapping[str, object] = field(default_factory=dict)
    freeform: str = ""


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong the first `times` that a reply is asked for: an error, or a cut stream."""

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

    input_tokens: int | None = None
    """Reported instead of the counted ones, so that a client believes its window full."""


@dataclass(frozen=True, slots=True)
class Scene:
    """A prompt and the replies to it; each but the last calls tools.

    The cue is looked for in what the person said, or in the system prompt for the requests
    that clients make on their own account: titles, summaries.
    """

    cue: str
    replies: tuple[Reply, ...]
    speaker: Speaker = "person"
    place: Place = "prompt"


@dataclass(frozen=True, slots=True)
class Result:
    """What a tool answered, as the client told the model."""

    call_id: str
    text: str
    failed: bool = False


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
            return Chosen(scene, 0, scene.replies[0])
    answered: set[str] = set()
    for turn in reversed(asked.turns):
        if turn.role == "user":
            cued = find_scene(scenes, turn)
            if cued:
                return reply_after(cued, len(answered))
            answered.update(result.call_id for result in turn.results)
    raise Unscripted("no scene has this prompt")


def find_scene(scenes: tuple[Scene, ...], turn: Turn) -> Scene | None:
    for text in reversed(turn.texts):
        for scene in scenes:
            if scene.place == "prompt" and scene.cue in text:
                return scene
    return None


def reply_after(scene: Scene, results: int) -> Chosen:
    expected = 0
    for step, reply in enumerate(scene.replies):
        if expected == results:
            return Chosen(scene, step, reply)
        expected += len(reply.calls)
    raise Unscripted(f"no reply after {results} results to: {scene.cue[:80]}")
