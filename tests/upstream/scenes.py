"""A script of scenes: the reply follows from the prompt and the results of tools after it."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from tests.upstream.apis import parse_prompt
from tests.upstream.script import (
    ModelReply,
    Prompt,
    ReceivedRequest,
    Result,
    Turn,
    Unscripted,
)

Place = Literal["prompt", "system"]
Speaker = Literal["person", "agent", "client"]
"""Who sets a cue: the person, an agent or program in the person's place, or the client for a
request of its own that is no turn of the conversation."""

ReplyMaker = Callable[[tuple[Result, ...]], ModelReply]
"""Makes a reply from the results of tools since the prompt, where a call needs one of them."""


@dataclass(frozen=True, slots=True)
class Scene:
    """A prompt and the replies to it; each but the last calls tools.

    The cue is looked for in the prompt, or in the system prompt for the requests that clients make
    on their own account: titles, summaries.
    """

    cue: str
    replies: tuple[ModelReply | ReplyMaker, ...]
    speaker: Speaker = "person"
    place: Place = "prompt"


class SceneScript:
    """Replies by scenes.

    Only faults are counted between requests, so a retry and a resumed session get the same reply.
    """

    def __init__(self, scenes: tuple[Scene, ...]) -> None:
        self._scenes = scenes
        self._faults: Counter[tuple[str, int]] = Counter()
        self.speakers: dict[str, Speaker] = {scene.cue: scene.speaker for scene in scenes}

    def __call__(self, request: ReceivedRequest) -> ModelReply:
        """Return the reply to a request; raise `Unscripted` if no scene has it."""
        if request.api == "other":
            raise Unscripted(request.target)
        scene, step, reply = self._choose(parse_prompt(request.api, request.json))
        request.cue, request.step = scene.cue, step
        if reply.fault:
            self._faults[scene.cue, step] += 1
            if self._faults[scene.cue, step] > reply.fault.times:
                reply = copy.copy(reply)
                reply.fault = None
        return reply

    def _choose(self, prompt: Prompt) -> tuple[Scene, int, ModelReply]:
        for scene in self._scenes:
            if scene.place == "system" and scene.cue in prompt.system:
                return _reply_after(scene, ())
        later: list[Result] = []
        for turn in reversed(prompt.turns):
            if turn.role != "user":
                continue
            if cued := self._find(turn):
                return _reply_after(cued, tuple(reversed(later)))
            later += reversed(turn.results)
        message = "no scene has this prompt"
        raise Unscripted(message)

    def _find(self, turn: Turn) -> Scene | None:
        for text in reversed(turn.texts):
            for scene in self._scenes:
                if scene.place == "prompt" and scene.cue in text:
                    return scene
        return None


def _reply_after(scene: Scene, results: tuple[Result, ...]) -> tuple[Scene, int, ModelReply]:
    expected = 0
    for step, made in enumerate(scene.replies):
        reply = made if isinstance(made, ModelReply) else made(results)
        if expected == len(results):
            return scene, step, reply
        expected += len(reply.calls)
    message = f"no reply after {len(results)} results to: {scene.cue[:80]}"
    raise Unscripted(message)
