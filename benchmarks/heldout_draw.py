"""Templates of the held-out redaction corpus, and how a sample is drawn from one.

A slot stands between « and »: `«hex:40»` is forty hex digits, `«b62:8-12»` eight to twelve letters
and digits, `«rows:9»` nine full lines of base64, `«host»` a text of WORDS, `«dev|prod»` one of two.
"""

from __future__ import annotations

import json
import random
import re
import string
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

SLOT = re.compile(r"«([^«»]+)»")
SIZE = re.compile(r"(\w+):(\d+)(?:-(\d+))?")
PEM_WIDTH = 64  # columns of a PEM body (RFC 7468)
DRAWS = 200  # how often a kind may draw a line it has drawn before, until its templates are too few

ALPHABETS = {
    "hex": "0123456789abcdef",
    "HEX": "0123456789ABCDEF",
    "dig": string.digits,
    "low": string.ascii_lowercase,
    "abc": string.ascii_letters,
    "an": string.ascii_lowercase + string.digits,
    "AN": string.ascii_uppercase + string.digits,
    "b62": string.ascii_letters + string.digits,
    "b64": string.ascii_letters + string.digits + "+/",
    "url": string.ascii_letters + string.digits + "-_",
    "b32": string.ascii_uppercase + "234567",
    "bech": "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L",
}
WORDS = {
    "user": "alice bob carol deploy admin svc_api app_rw reporting mkovacs jdoe backup".split(),
    "db": "orders billing analytics app_production users inventory metrics shop crm events".split(),
    "service": "api worker billing gateway auth-proxy ingest mailer scheduler web search".split(),
    "company": "acme northwind globex initech umbra contoso fabrikam hooli lumen tessera".split(),
    "word": (
        "orchid maple falcon copper velvet thunder saddle winter lantern pepper comet harbor"
        " walnut glacier raven meadow cobalt ember juniper puzzle magnet violet canyon tiger"
    ).split(),
    "Word": (
        "Orchid Maple Falcon Copper Velvet Thunder Saddle Winter Lantern Pepper Comet Harbor"
        " Walnut Glacier Raven Meadow Cobalt Ember Juniper Puzzle Magnet Violet Canyon Tiger"
    ).split(),
    "WORD": "ORCHID MAPLE FALCON COPPER VELVET THUNDER WINTER LANTERN PEPPER COMET HARBOR".split(),
    "file": "client config session login deploy tokens parser index server handlers".split(),
    "verb": "add fix move rename drop cache retry validate log refactor".split(),
    "host": [
        "«db».«an:6».eu-west-1.rds.amazonaws.com", "«service».internal", "10.«dig:1».3.«dig:2»",
        "«service»-«dig:1».«company».io", "localhost", "db.«company».com",
    ],
    "uuid": ["«hex:8»-«hex:4»-4«hex:3»-a«hex:3»-«hex:12»"],
    "time": ["2026-0«1|2|3|4|5|6|7|8|9»-1«dig:1»T0«dig:1»:«1|2|3|4»«dig:1»:«1|2|3|4»«dig:1»Z"],
    "num": ["«1|2|3|4|5|6|7|8|9»«dig:1-4»"],
    # Passwords: what people and generators make; the second list needs quotes in a shell, the
    # third may stand in the user part of an URL.
    "pw": [
        "«b62:12-24»", "«Word»-«word»-«word»-«dig:2»", "«Word»«dig:4»!", "«an:16»", "«url:20»",
        "«Word»_«Word»_«dig:3»", "«b62:7».«b62:6»",
    ],
    "pwsym": [
        "«b62:6»#«b62:5»%«b62:4»", "«Word»$«dig:3»&«Word»", "«b62:8»!@«b62:4»^«b62:3»",
        "«Word»«dig:2»*«b62:6»?", "«b62:5»~«b62:5»)«b62:4»",
    ],
    "pwurl": ["«b62:10-20»", "«b62:6»%40«b62:5»", "«Word»%21«dig:4»", "«url:18»", "«Word»-«dig:5»"],
    "jwt": [
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiI«url:80-160».«url:43»",
        "eyJhbGciOiJSUzI1NiIsImtpZCI6I«url:24».eyJpc3MiOiJodHRwczovL«url:200-300».«url:342»",
        "eyJ0eXAiOiJKV1QiLCJhbGciOiJFUzI1NiJ9.eyJleHAiOjE3«url:90».«url:86»",
    ],
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Kind:
    """Lines of one kind; `«SECRET»` in them is where one of `keys` stands."""

    name: str
    lines: Sequence[str]
    keys: Sequence[str] = ()
    words: Mapping[str, Sequence[str]] | None = None
    shape: Callable[[str], str] = str


def fill(dice: random.Random, template: str, words: Mapping[str, Sequence[str]]) -> str:
    """Return the template with something drawn for every slot."""

    def draw(slot: re.Match[str]) -> str:
        name = slot[1]
        if sized := SIZE.fullmatch(name):
            count = dice.randint(int(sized[2]), int(sized[3] or sized[2]))
            if sized[1] == "rows":
                return "\n".join(
                    "".join(dice.choices(ALPHABETS["b64"], k=PEM_WIDTH)) for _ in range(count)
                )
            return "".join(dice.choices(ALPHABETS[sized[1]], k=count))
        known = words.get(name) or WORDS.get(name)
        return fill(dice, dice.choice(known or name.split("|")), words)

    return SLOT.sub(draw, template)


def draw_lines(kind: Kind, seed: int, count: int) -> Iterator[tuple[str, str]]:
    """Yield different lines of a kind, each with its secret, all of its templates in turn."""
    dice = random.Random(f"{seed} {kind.name}")
    seen: set[str] = set()
    for turn in range(DRAWS):
        secret = fill(dice, kind.keys[turn % len(kind.keys)], {}) if kind.keys else ""
        words = {**(kind.words or {}), "SECRET": [secret]}
        line = kind.shape(fill(dice, kind.lines[turn % len(kind.lines)], words))
        if line in seen:
            continue
        seen.add(line)
        yield line, secret
        if len(seen) == count:
            return
    message = f"{kind.name} has too few different lines"
    raise ValueError(message)


def escape(text: str) -> str:
    """Return the text as a JSON string holds it, in its quotes."""
    return json.dumps(text)


def escape_twice(text: str) -> str:
    """Return JSON within JSON: a tool's result that was itself a JSON document."""
    return json.dumps({"content": json.dumps({"stdout": text, "code": 0})})


def call_bash(command: str) -> str:
    """Return the command as an agent's transcript records the call of its shell."""
    call = {"type": "tool_use", "name": "Bash", "input": {"command": command, "timeout": 60000}}
    return json.dumps(call, separators=(",", ":"))


def indent(text: str) -> str:
    """Return the text as a block of YAML below its key."""
    return textwrap.indent(text, "    ")


def number_lines(text: str) -> str:
    """Return the text as a tool shows a file: each line after its number and an arrow or tab."""
    return "\n".join(f"{n:>6}→{line}" for n, line in enumerate(text.split("\n"), 1))


def add_lines(text: str) -> str:
    """Return the text as lines that a diff adds."""
    return "@@ -0,0 +1 @@\n" + textwrap.indent(text, "+", lambda _: True)
