"""A scripted upstream on loopback that serves Anthropic Messages, OpenAI Chat Completions and
Responses, and Gemini; streaming and not.

It rejects what the real APIs reject, and counts tokens and cache reads and writes by the prefix
that it was really sent (prompt_cache.py). A test passes in the replies:

    with running_upstream([ModelReply("Hello."), ModelReply(Call("Read", {"path": "a"}))]) as up:
        …  # send requests to up.url; each takes the next reply, and "Understood." when none is left
        assert up.requests[0].json["messages"] == …  # every request, with its usage
        assert not up.rejected  # requests that broke a rule, each with its `problem`

The script may be a function of the request instead, which runs in the thread of the upstream; or a
`SceneScript` (scenes.py), which replies by what the prompt says. Besides `ModelReply` there are
`ModelError`, an error in the format of the API, and `RawResponse`, any bytes. The parts of a reply
are Text, Thought and Call. `clock` (seconds) moves the lives of caches, `window_tokens` is the
longest prompt, and `up.reply_with(…)` adds to the script while it runs.
"""

from tests.upstream.scenes import Scene, SceneScript
from tests.upstream.script import (
    Call,
    Fault,
    ModelError,
    ModelReply,
    RawResponse,
    ReceivedRequest,
    Result,
    ScriptedResponse,
    Text,
    Thought,
)
from tests.upstream.server import Upstream, running_upstream

__all__ = [
    "Call",
    "Fault",
    "ModelError",
    "ModelReply",
    "RawResponse",
    "ReceivedRequest",
    "Result",
    "Scene",
    "SceneScript",
    "ScriptedResponse",
    "Text",
    "Thought",
    "Upstream",
    "running_upstream",
]
