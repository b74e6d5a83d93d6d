"""Agents of a soak: they talk through the gateway, lose connections, go back, and begin anew."""

from __future__ import annotations

import asyncio
import json
import random
import time
import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp

from soak_material import HEADER, Step
from soak_wires import Completions, Messages, Responses, Unnamed, Wire

FAULTS = {"cut": 0.03, "stop": 0.02, "500": 0.02, "429": 0.02, "slow": 0.03, "dripping": 0.02}
"""What happens to how many requests: the connection is lost and it is asked again, a person stops
the answer and says something else, the upstream fails, or it is slow to begin or to go on."""

SEARCHES, REWINDS = 0.08, 0.015
LENGTHS = (40, 140)
"""Turns of a session."""

AGAIN_S = 2.0
MOST_TRIES = 60
CUT_BYTES = 700
BROKEN = (b"event: error", b'data: {"error"', b"response.failed")
"""How a stream says that it will not end well: a budget may be spent between two rounds."""


@dataclass
class Book:
    """What was played, as far as it has to show up in the store: by the mark in each message."""

    once: set[str] = field(default_factory=set)
    perhaps: set[str] = field(default_factory=set)
    """Answers that nobody heard to their end."""
    never: set[str] = field(default_factory=set)
    cut: set[str] = field(default_factory=set)
    """Requests whose answers were not heard out."""
    sent_s: dict[str, float] = field(default_factory=dict)
    done: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    expected: Counter[str] = field(default_factory=Counter)
    """What went wrong because the script says so."""
    finished: list[tuple[str, list[str]]] = field(default_factory=list)
    """Sessions that have ended, with their marks: one of them will be forgotten."""


@dataclass
class Stage:
    """Where all play: the daemon, the material, and how long each waits between two turns."""

    url: str
    key: str
    home: Path
    steps: Sequence[Step]
    client: aiohttp.ClientSession
    book: Book
    pause_s: float = 2.0
    ends_s: float = 0.0

    @property
    def is_over(self) -> bool:
        """Tell whether nothing new is begun."""
        return time.monotonic() > self.ends_s

    async def rest(self, chance: random.Random, share: float = 1.0) -> None:
        """Wait as somebody does who reads."""
        await asyncio.sleep(min(60.0, self.pause_s * share * chance.uniform(0.3, 1.7)))

    async def hook(self, event: str, **said: Any) -> str:
        """Tell of a moment as `lore hook` does, and return what is given for it."""
        headers = {"authorization": f"Bearer {self.key}"}
        address = f"{self.url}/api/v1/hooks/{event}"
        async with self.client.post(address, json=said, headers=headers) as got:
            self.book.done["hook"] += 1
            if got.status != 200:
                self.book.errors[f"hook {got.status}"] += 1
                return ""
            told = await got.json()
        return str(told.get("hookSpecificOutput", {}).get("additionalContext", ""))


class Agent:
    """One agent, and the session that it is in."""

    def __init__(self, stage: Stage, number: int, wire: type[Wire]) -> None:
        self._stage = stage
        self._number = number
        self._kind = wire
        self._chance = random.Random(number)
        self._sessions = 0
        self._project = f"/code/soak-{number % 3}"
        self._tools = sorted({step.tool for step in stage.steps if step.tool})

    async def play(self) -> None:
        """Talk, session after session."""
        await self._stage.rest(self._chance, 2.0)
        while not self._stage.is_over:
            await self.play_session(self._chance.randint(*LENGTHS))

    async def play_session(self, turns: int, *, amnesic: bool = False) -> None:
        """Have one conversation."""
        self._sessions += 1
        self._said = 0
        self._marks: list[str] = []
        self._unsent: list[str] = []
        self._amnesic = amnesic
        self._step = self._chance.randrange(len(self._stage.steps) - turns)
        session = str(uuid.UUID(int=self._chance.getrandbits(128), version=4))
        self.wire = self._kind(session, self._project, self._tools)
        self._transcript = self._open_transcript(session)
        await self._begin()
        if amnesic:
            await self._forget_what_follows()
        await self._prompt(self._stage.steps[self._step].prompt or "Where were we?")
        for _ in range(turns):
            if self._stage.is_over:
                break
            await self._turn()
            await self._stage.rest(self._chance)
        if self._transcript is not None:
            self._expect_sent()  # it was written down
        await self._end()
        self._stage.book.finished.append((session, self._marks))

    async def _begin(self) -> None:
        """Nothing is told where an agent has no hooks."""

    async def _end(self) -> None:
        """As above."""

    def _open_transcript(self, session: str) -> Path | None:  # noqa: ARG002
        return None

    async def _given(self, text: str) -> str:  # noqa: ARG002
        return ""

    def _wrote(self, kind: str, message: Any) -> None:
        """Nothing is written where an agent keeps no transcript that is captured."""

    async def _heard(self) -> None:
        """As above."""

    def _mark(self) -> str:
        self._said += 1
        return f"mark-a{self._number}s{self._sessions}n{self._said}"

    def _expect(self, mark: str, *, sure: bool = True) -> None:
        book = self._stage.book
        (book.never if self._amnesic else book.once if sure else book.perhaps).add(mark)
        self._marks.append(mark)

    def _expect_sent(self) -> None:
        """Expect what a client has said since the last answer, now that it was sent."""
        for mark in self._unsent:
            self._expect(mark)
        self._unsent.clear()

    async def _forget_what_follows(self) -> None:
        self.wire.prompt("/lore:amnesia on")
        self._wrote("user", self.wire.history[-1])
        self.wire.hear((await self._ask({"step": 0}))[1])
        self._wrote("assistant", self.wire.history[-1])
        if "nothing of this conversation is stored" not in json.dumps(self.wire.history[-1]):
            self._stage.book.errors["amnesia"] += 1

    async def _prompt(self, text: str) -> None:
        mark = f"{self._mark()}.typed"
        said = f"{mark} {text}"
        self.wire.prompt(said, await self._given(said))
        self._wrote("user", self.wire.history[-1])
        self._unsent.append(mark)

    async def _turn(self) -> None:
        """Ask until there is an answer, then say what a client says to it."""
        step = self._stage.steps[self._step % len(self._stage.steps)]
        place = self._step % len(self._stage.steps)
        self._step += 1
        fault = self._draw_fault()
        if fault is not None and await self._fail(place, fault):
            return
        wanted: dict[str, Any] = {"step": place}
        wanted |= {"after_s": 2.5} if fault == "slow" else {}
        wanted |= {"gap_s": 0.1} if fault == "dripping" else {}
        wanted |= {"thinks": True} if isinstance(self.wire, Messages) and place % 3 == 0 else {}
        wanted |= {"searches": True} if self._chance.random() < SEARCHES else {}
        mark, answer = await self._ask(wanted)
        calls = self.wire.hear(answer)
        self._expect(f"{mark}.said")
        if calls:
            self._expect(f"{mark}.called")
        self._wrote("assistant", self.wire.history[-1])
        await self._answer(calls, step.output)

    async def _answer(self, calls: Sequence[str], output: str) -> None:
        """Say what follows: results of calls, or something new, here or further up."""
        if calls:
            marks = [f"{self._mark()}.gave" for _ in calls]
            self.wire.give([
                (call, f"{mark}\n{output}") for call, mark in zip(calls, marks, strict=True)
            ])  # fmt: skip
            self._unsent += marks
            self._wrote("user", self.wire.history[-1])
            return
        await self._heard()
        prompts = [at for at in range(3, len(self.wire.history)) if self.wire.is_prompt(at)]
        if prompts and self._chance.random() < REWINDS * 10:
            self._stage.book.done["rewind"] += 1
            del self.wire.history[self._chance.choice(prompts[-4:]) :]
        following = self._stage.steps[self._step % len(self._stage.steps)].prompt
        await self._prompt(following or "Go on with the next point.")

    def _draw_fault(self) -> str | None:
        drawn = self._chance.random()
        for fault, share in FAULTS.items():
            drawn -= share
            if drawn < 0:
                return fault
        return None

    async def _fail(self, place: int, fault: str) -> bool:
        """Let a request fail; tell whether it was given up for something else."""
        mark, book = self._mark(), self._stage.book
        if fault in ("500", "429"):
            book.expected[fault] += 1
            status, answer = await self._send({"mark": mark, "fails": int(fault)})
            if status != int(fault) and b"budget" not in answer.lower():
                book.errors[f"{status} instead of {fault}"] += 1
        elif fault in ("cut", "stop"):
            book.expected[fault] += 1
            await self._send({"mark": mark, "step": place, "gap_s": 0.02}, cut=True)
            book.cut.add(mark)
            self._expect(f"{mark}.said", sure=False)
            self._expect(f"{mark}.called", sure=False)
            if fault == "stop" and self.wire.is_prompt(-1):
                await self._prompt("Stop. Do it the other way round.")
                return True
        return False

    async def _ask(self, wanted: dict[str, Any]) -> tuple[str, bytes]:
        """Return the answer with its mark, asked for as often as it takes."""
        for _ in range(MOST_TRIES):
            mark = self._mark()
            status, answer = await self._send({"mark": mark, **wanted})
            if status == 200 and not any(told in answer for told in BROKEN):
                self._expect_sent()
                return mark, answer
            if b"budget" in answer.lower():
                self._stage.book.expected["budget"] += 1
            else:
                self._stage.book.errors[f"{self.wire.agent} {status or answer.decode()}"] += 1
            await asyncio.sleep(AGAIN_S)
        msg = f"no answer to {wanted}"
        raise RuntimeError(msg)

    async def _send(self, wanted: dict[str, Any], *, cut: bool = False) -> tuple[int, bytes]:
        stage, answer = self._stage, b""
        headers = {
            **self.wire.headers(),
            "x-lore-project": self._project,
            "content-type": "application/json",
            "authorization": "Bearer of-a-client",
            HEADER: json.dumps(wanted),
        }
        body = json.dumps(self.wire.body()).encode()
        stage.book.sent_s[wanted["mark"]] = time.monotonic()
        try:
            async with stage.client.post(
                stage.url + self.wire.path, data=body, headers=headers
            ) as got:
                degraded = got.headers.get("x-lore-degraded")
                if degraded:
                    stage.book.errors[f"degraded {degraded}"] += 1
                async for data in got.content.iter_any():
                    answer += data
                    if cut and len(answer) > CUT_BYTES:
                        got.close()
                        break
                stage.book.done[self.wire.agent] += 1
                return got.status, answer
        except (aiohttp.ClientError, TimeoutError) as error:
            return 0, type(error).__name__.encode()


class ClaudeCode(Agent):
    """An agent with hooks whose transcript is captured as well: all is told three times."""

    def __init__(self, stage: Stage, number: int) -> None:
        super().__init__(stage, number, Messages)
        self._parent: str | None = None

    def _open_transcript(self, session: str) -> Path | None:
        folder = self._stage.home / ".claude" / "projects" / self._project.replace("/", "-")
        folder.mkdir(parents=True, exist_ok=True)
        self._parent = None
        return folder / f"{session}.jsonl"

    async def _begin(self) -> None:
        await self._tell("SessionStart", source="startup")

    async def _end(self) -> None:
        await self._tell("SessionEnd", reason="exit")

    async def _heard(self) -> None:
        await self._tell("Stop")

    async def _given(self, text: str) -> str:
        return await self._tell("UserPromptSubmit", prompt=text)

    async def _tell(self, event: str, **said: Any) -> str:
        return await self._stage.hook(
            event,
            session_id=self.wire.session,
            transcript_path=str(self._transcript),
            cwd=self._project,
            hook_event_name=event,
            **said,
        )

    def _wrote(self, kind: str, message: Any) -> None:
        """Append to the transcript: a line for each block of an answer, as the real one does."""
        lines = [message]
        if kind == "assistant":
            frame = {"id": self.wire.last_id, "type": "message", "model": self.wire.model}  # type: ignore[union-attr]  # it speaks Messages
            lines = [{**message, **frame, "content": [one]} for one in message["content"]]
        elif message["content"][0]["type"] == "text":
            lines = [{"role": "user", "content": message["content"][0]["text"]}]
        assert self._transcript
        with self._transcript.open("ab") as stream:
            for line in lines:
                stream.write(self._line(kind, line))

    def _line(self, kind: str, message: Any) -> bytes:
        made = str(uuid.UUID(int=self._chance.getrandbits(128), version=4))
        told = {
            "parentUuid": self._parent,
            "isSidechain": False,
            "userType": "external",
            "type": kind,
            "sessionId": self.wire.session,
            "uuid": made,
            "timestamp": datetime.now(UTC).isoformat().replace("+00:00", "Z"),
            "cwd": self._project,
            "gitBranch": "main",
            "version": "2.1.40",
            "message": message,
        }
        self._parent = made
        return json.dumps(told).encode() + b"\n"


def agents(stage: Stage) -> list[Agent]:
    """Return all agents that talk through the gateway."""
    kinds: list[type[Wire]] = [Messages, Responses, Completions, Unnamed]
    return [
        ClaudeCode(stage, 1),
        *(Agent(stage, number, kind) for number, kind in enumerate(kinds, 2)),
    ]
