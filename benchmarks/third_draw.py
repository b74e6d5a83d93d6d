"""How the third corpus is drawn: tables of templates, slots that are filled, and surroundings.

In a table `== name` begins a kind, every other line is a template, `↵` is a new line, `⇥` a tab, `␛` Escape.
A slot is `«what»`, `«what:size»`, `«what:least-most»` or `«one|other»`; `⟦` and `⟧` enclose the
secret.
"""

from __future__ import annotations

import base64
import json
import random
import re
import string
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from third_words import LISTS

__all__ = ["Kind", "draw", "fill", "read_kinds", "read_tables"]

SLOT = re.compile(r"«([^«»]*)»")
SECRET = re.compile(r"⟦(.*?)⟧", re.DOTALL)
LOWER = string.ascii_lowercase
BASE64 = string.ascii_letters + string.digits
ALPHABETS = {
    "hex": "0123456789abcdef", "HEX": "0123456789ABCDEF", "num": string.digits,
    "an": string.ascii_letters + string.digits, "up": string.ascii_uppercase + string.digits,
    "low": LOWER + string.digits, "b64": BASE64 + "+/", "b64u": BASE64 + "-_",
    "b32": string.ascii_uppercase + "234567", "az": LOWER, "bech": "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L",
}  # fmt: skip
SYMBOLS = {"pw": "!#%*+-=?^_~.", "pwu": "-_.~!*", "pws": "-_.%+=,^"}
"""Signs of a password: anywhere within quotes, within an address, bare in a shell."""
LEET = str.maketrans("aeio", "4310")
PLAIN_SHARE = 0.6
"""Lines that stand alone; the others are met within what a tool printed."""


@dataclass(frozen=True, slots=True)
class Kind:
    """Some templates that are alike."""

    name: str
    templates: tuple[str, ...]
    lines: int
    wrapped: bool


def read_tables(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the head and the rows of each table in a text."""
    for table in re.split(r"(?m)^== ", text)[1:]:
        head, *rows = table.splitlines()
        yield head.strip(), [row for row in rows if row.strip()]


def read_kinds(text: str, lines: int, *, wrapped: bool = True) -> tuple[Kind, ...]:
    """Return the kinds of a text; a number behind the name says how many lines of it to draw."""
    kinds = []
    for head, rows in read_tables(text):
        name, _, many = head.partition(" ")
        kinds.append(Kind(name, tuple(rows), int(many or lines), wrapped))
    return tuple(kinds)


def draw(kind: Kind, seed: int) -> Iterator[tuple[str, str]]:
    """Yield the lines of a kind, each with its secret, which is empty where there is none."""
    rng = random.Random(f"{seed}/{kind.name}")
    deck: list[str] = []
    for _ in range(kind.lines):
        if not deck:
            deck = rng.sample(kind.templates, len(kind.templates))
        filled = fill(deck.pop(), rng)
        found = SECRET.search(filled)
        line = SECRET.sub(r"\1", filled)
        yield (surround(line, rng) if kind.wrapped else line), found[1] if found else ""


def fill(template: str, rng: random.Random) -> str:
    """Return a template with all its slots filled."""
    text = template.replace("↵", "\n").replace("⇥", "\t").replace("␛", "\x1b")
    while SLOT.search(text):
        text = SLOT.sub(lambda found: _value(found[1], rng), text)
    return text


def surround(line: str, rng: random.Random) -> str:
    """Return a line as a tool shows it: within JSON, numbered, as a diff, or as it is."""
    if rng.random() < PLAIN_SHARE:
        return line
    rows = line.split("\n")
    first = rng.randint(1, 300)
    way = rng.choice(("json", "numbered", "diff", "grep", "indent"))
    if way == "json":
        used = f"toolu_{_some(rng, 'an', 24)}"
        block = {"type": "tool_result", "tool_use_id": used, "content": line}
        return json.dumps(block, ensure_ascii=False)
    if way == "numbered":
        return "\n".join(f"{at:>6}→{row}" for at, row in enumerate(rows, first))
    if way == "diff":
        mark = rng.choice("+- ")
        return "\n".join(mark + row for row in rows)
    if way == "grep" and len(rows) == 1:
        return f"{fill('«path»', rng)}:{first}:{line}"
    return "\n".join("    " + row for row in rows)


def _value(slot: str, rng: random.Random) -> str:
    """Return what a slot stands for."""
    if "|" in slot:
        return rng.choice(slot.split("|"))
    what, _, size = slot.partition(":")
    if what in CHOICES:
        return rng.choice(CHOICES[what])
    if what in SYMBOLS:
        return _password(what, rng)
    if what in MAKERS:
        return MAKERS[what](rng)
    return _sized(what, size, rng)


def _sized(what: str, size: str, rng: random.Random) -> str:
    """Return a number, some lines of base64, or characters of an alphabet."""
    if what == "n":
        return str(_number(size or "1-500", rng))
    if what == "lines":
        count, _, between = size.partition(":")
        return (between or "\n").join(_some(rng, "b64", 64) for _ in range(int(count)))
    return _some(rng, what, _number(size, rng))


def _number(size: str, rng: random.Random) -> int:
    least, _, most = size.partition("-")
    return rng.randint(int(least), int(most or least))


def _some(rng: random.Random, alphabet: str, count: int) -> str:
    return "".join(rng.choice(ALPHABETS[alphabet]) for _ in range(count))


def _password(what: str, rng: random.Random) -> str:
    """Return a password as people choose them, or as a generator does."""
    signs = SYMBOLS[what]
    stem = rng.choice(LISTS["stem"])
    way = rng.random()
    if way < 0.3:
        between, end = rng.choice(("", rng.choice(signs))), rng.choice(("", "!", rng.choice(signs)))
        return f"{rng.choice((stem, stem.title()))}{between}{rng.randint(100, 9999)}{end}"
    if way < 0.55:
        body = [rng.choice(BASE64) for _ in range(rng.randint(9, 18))]
        for _ in range(rng.randint(1, 4)):
            body.insert(rng.randint(1, len(body) - 1), rng.choice(signs))
        return "".join(body)
    if way < 0.65:
        other = rng.choice(LISTS["stem"])
        return f"{stem.title()}{other.title()}".translate(LEET) + str(rng.randint(1, 99))
    if way < 0.85:
        return _some(rng, "an", rng.randint(12, 24)) + str(rng.randint(0, 9))
    return "-".join(rng.sample(LISTS["stem"], rng.randint(3, 4))) + f"-{rng.randint(2, 99)}"


def _encode(value: dict[str, object]) -> str:
    raw = json.dumps(value, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _jwt(rng: random.Random) -> str:
    head: dict[str, object] = {"alg": rng.choice(("HS256", "RS256", "ES256")), "typ": "JWT"}
    body: dict[str, object] = {
        "sub": str(uuid.UUID(int=rng.getrandbits(128))), "iat": rng.randint(1_700_000_000, 1_790_000_000),
        "role": rng.choice(("admin", "service_role", "user")),
    }  # fmt: skip
    return f"{_encode(head)}.{_encode(body)}.{_some(rng, 'b64u', rng.choice((43, 86, 342)))}"


def _pair(rng: random.Random, between: str) -> str:
    return f"{rng.choice(LISTS['verb'])}{between}{rng.choice(LISTS['noun'])}"


def _camel(rng: random.Random) -> str:
    return (
        rng.choice(LISTS["verb"])
        + rng.choice(LISTS["adj"]).title()
        + rng.choice(LISTS["noun"]).title()
    )


def _base64_pair(rng: random.Random) -> str:
    """Return a user and a password as Basic authentication carries them."""
    return base64.b64encode(f"{rng.choice(LISTS['user'])}:{_password('pw', rng)}".encode()).decode()


def _base64_password(rng: random.Random) -> str:
    return base64.b64encode(_password("pw", rng).encode()).decode()


CHOICES: dict[str, tuple[str, ...]] = LISTS | {
    "path": (
        "src/«noun»s/«noun».«ext»", "«dir»/«snake».«ext»", "packages/«noun»/src/«kebab».ts",
        "internal/«noun»/«noun»_test.go", "tests/test_«snake».py", "app/«noun»s/«Class».php",
        "config/«noun».yml", "/home/«user»/«svc»/«noun».«ext»", "docs/«kebab».md",
    ),
    "dir": ("lib", "app/models", "src/core", "cmd/server", "web/components", "scripts", "infra/modules"),
    "host": (
        "«noun».«svc».«tld»", "db-«num:2».«svc».internal", "«svc».«tld»", "localhost",
        "«noun»-«n:1-9».prod.«svc».net", "10.«n:0-255».«n:0-255».«n:1-254»",
    ),
    "site": ("«svc».com", "api.«svc».io", "«noun».«svc».dev", "www.«svc».org"),
    "ip": ("10.«n:0-255».«n:0-255».«n:1-254»", "192.168.«n:0-9».«n:1-254»", "172.«n:16-31».0.«n:2-99»"),
    "port": ("«n:3000-9999»", "5432", "443", "6379", "8080", "27017"),
    "date": ("20«n:22-26»-«n:10-12»-«n:10-28»",),
    "time": ("«n:10-23»:«n:10-59»:«n:10-59»",),
    "ts": ("«date»T«time»Z", "«date»T«time».«num:3»Z", "«date» «time»,«num:3»"),
    "ver": ("«n:0-9».«n:0-30».«n:0-20»", "«n:1-4».«n:0-9».0", "0.«n:1-40».«n:0-9»"),
    "snake": ("«verb»_«noun»", "«adj»_«noun»", "«noun»_«noun»_id", "«verb»_«adj»_«noun»"),
    "kebab": ("«verb»-«noun»", "«adj»-«noun»", "«noun»-«noun»-list"),
    "email": ("«mail».«num:2»@«svc».com", "«user»@«svc».io", "«mail»@example.org"),
    "sha1": ("«hex:40»",), "sha": ("«hex:7»", "«hex:9»"), "sha256": ("«hex:64»",),
    "ms": ("«n:1-900»ms", "«n:1-60».«num:2»s", "«n:1-9».«num:1» s"),
}  # fmt: skip
MAKERS: dict[str, Callable[[random.Random], str]] = {
    "uuid": lambda rng: str(uuid.UUID(int=rng.getrandbits(128), version=4)),
    "jwt": _jwt,
    "basic": _base64_pair,
    "pw64": _base64_password,
    "camel": _camel,
    "Class": lambda rng: rng.choice(LISTS["adj"]).title() + rng.choice(LISTS["noun"]).title(),
    "ENV": lambda rng: _pair(rng, "_").upper(),
    "mail": lambda rng: f"{rng.choice(LISTS['first'])}.{rng.choice(LISTS['last'])}".lower(),
    "Name": lambda rng: rng.choice(LISTS["noun"]).title(),
}
