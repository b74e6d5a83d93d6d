"""The values of a template's fields: patterns, passwords, tokens, and harmless things."""

from __future__ import annotations

import base64
import json
import random
import re
import string
from collections.abc import Callable

from fifth.words import POOLS

__all__ = ["value"]

LETTERS = string.ascii_letters
CLASSES = {
    "A": LETTERS + string.digits,
    "a": string.ascii_lowercase + string.digits,
    "U": string.ascii_uppercase + string.digits,
    "l": string.ascii_lowercase,
    "u": string.ascii_uppercase,
    "L": LETTERS,
    "h": "0123456789abcdef",
    "H": "0123456789ABCDEF",
    "d": string.digits,
    "n": "123456789",
    "b": LETTERS + string.digits + "+/",
    "w": LETTERS + string.digits + "-_",
    "s": string.ascii_uppercase + "234567",
    "z": "qpzry9x8gf2tvdw0s3jn54khce6mua7l",
}
"""Alphabets of a pattern: `%A36` is 36 of the first, `%h8:12` eight to twelve of another."""

PIECE = re.compile(r"%([A-Za-z])(\d+)(?::(\d+))?")
SIGNS = "!#%&*+-=?@^_~.$"
SEED_WORDS = 12
"""Words of a wallet's recovery phrase."""

LINE = 64
"""Characters of a line in a PEM file."""


def pattern(rng: random.Random, shape: str) -> str:
    """Return a text of a shape such as `ghp_%A36`."""

    def drawn(piece: re.Match[str]) -> str:
        kind, least, most = piece.groups()
        count = rng.randint(int(least), int(most or least))
        return "".join(rng.choices(CLASSES[kind], k=count))

    return PIECE.sub(drawn, shape)


def word(rng: random.Random) -> str:
    """Return a plain word."""
    return rng.choice(POOLS["word"])


def leet(rng: random.Random) -> str:
    """Return a word with digits in place of letters, as people make passwords."""
    swaps = {"a": "@4", "e": "3", "i": "1!", "o": "0", "s": "5$"}
    made = "".join(rng.choice(swaps[c]) if c in swaps else c for c in word(rng))
    return made.capitalize() + rng.choice(SIGNS[:10]) + pattern(rng, "%d3:5")


def human(rng: random.Random, _: str = "") -> str:
    """Return a password that a person made up: words, a year, a sign."""
    first, second = word(rng), word(rng)
    year = str(rng.randint(1975, 2026))
    sign = rng.choice("!!!?#*.$@")
    return rng.choice((
        first.capitalize() + year + sign,
        first.capitalize() + second.capitalize() + pattern(rng, "%d2"),
        first + second + year,
        first.capitalize() + sign + second + pattern(rng, "%n2"),
        first + "_" + second + "_" + pattern(rng, "%d2:4"),
        first.capitalize() + "-" + second.capitalize() + "-" + pattern(rng, "%d2:3"),
        pattern(rng, "%n2") + first + second + sign,
        first + second,
    ))  # fmt: skip


def mixed(rng: random.Random, _: str = "") -> str:
    """Return a password from a generator, with signs that need no quotes in most places."""
    size = rng.choice((10, 12, 14, 16, 16, 20, 24))
    made = rng.choices(CLASSES["A"], k=size - 3)
    made += [*rng.choices(SIGNS[:-1], k=1), *rng.choices(string.digits, k=1)]
    rng.shuffle(made)
    return rng.choice(LETTERS) + "".join(made) + rng.choice(LETTERS)


def password(rng: random.Random, _: str = "") -> str:
    """Return a password as people or generators make them."""
    return rng.choice((human, mixed, lambda r, _: leet(r), plain))(rng, "")


def plain(rng: random.Random, _: str = "") -> str:
    """Return a password of letters and digits only, which stands anywhere unquoted."""
    first, second = word(rng), word(rng)
    return rng.choice((
        pattern(rng, "%A1%d1%A10:22"),
        pattern(rng, "%l2%d2%a8:14"),
        first.capitalize() + second.capitalize() + pattern(rng, "%d2:4"),
        first + pattern(rng, "%d4") + second,
        pattern(rng, "%L12:20"),
    ))  # fmt: skip


def phrase(rng: random.Random, joint: str = "") -> str:
    """Return a passphrase of some words, with a joint between them or a drawn one."""
    count = rng.choice((4, 4, 5, 6))
    glue = joint.strip("'") or rng.choice((" ", "-", "-", ".", "_"))
    return glue.join(rng.sample(POOLS["word"], count))


def opaque(rng: random.Random, _: str = "") -> str:
    """Return a key that a service drew: hex, letters and digits, base64 or a uuid."""
    shapes = "%h32 %h40 %h64 %A24 %A32 %A40 %A48 %A64 %w43 %b43= %w32 %h24 %a32".split()
    return pattern(rng, rng.choice((*shapes, "%h8-%h4-4%h3-a%h3-%h12")))


def coded(rng: random.Random, field: str) -> str:
    """Return the base64 of another field's value."""
    name, _, argument = field.partition(" ")
    return base64.b64encode(value(rng, name, argument).encode()).decode()


def basic(rng: random.Random, _: str) -> str:
    """Return the base64 of a user and a password."""
    return base64.b64encode(f"{rng.choice(POOLS['user'])}:{password(rng)}".encode()).decode()


def part(claims: dict[str, object]) -> str:
    """Return claims as one part of a JWT."""
    packed = json.dumps(claims, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(packed).decode().rstrip("=")


def jwt(rng: random.Random, _: str) -> str:
    """Return a signed token of three parts."""
    algorithm, size = rng.choice((("HS256", 43), ("HS512", 86), ("RS256", 342), ("ES256", 86)))
    head: dict[str, object] = {"alg": algorithm, "typ": "JWT"}
    if rng.random() < 0.4:
        head["kid"] = pattern(rng, "%A12")
    start = rng.randint(1_690_000_000, 1_790_000_000)
    claims: dict[str, object] = {"sub": pattern(rng, "%d6"), "iat": start, "exp": start + 3600}
    if rng.random() < 0.5:
        claims |= {"iss": "https://" + rng.choice(POOLS["site"]), "role": "service_role"}
    return f"{part(head)}.{part(claims)}.{pattern(rng, f'%w{size}')}"


def lines_of_key(rng: random.Random, argument: str) -> str:
    """Return base64 in lines as a PEM file has them: how many characters, and the line's end."""
    size, _, end = argument.partition(" ")
    body = pattern(rng, f"%b{int(size)}")
    glue = {"": "\n", "esc": r"\n", "esc2": r"\\n", "in6": "\n      ", "in4": "\n    "}[end]
    return glue.join(body[at : at + LINE] for at in range(0, len(body), LINE))


def uuid(rng: random.Random, _: str) -> str:
    """Return a random uuid."""
    return pattern(rng, f"%h8-%h4-4%h3-{rng.choice('89ab')}%h3-%h12")


def date(rng: random.Random, _: str) -> str:
    """Return a day."""
    return f"20{rng.randint(19, 26)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"


def stamp(rng: random.Random, _: str) -> str:
    """Return a point in time as logs write it."""
    clock = f"{rng.randint(0, 23):02}:{rng.randint(0, 59):02}:{rng.randint(0, 59):02}"
    end = rng.choice(("", "Z", pattern(rng, ".%d3")))
    return f"{date(rng, '')}{rng.choice('T ')}{clock}{end}"


def number(rng: random.Random, bounds: str) -> str:
    """Return a number between two bounds."""
    least, _, most = (bounds or "1 9999").partition(" ")
    return str(rng.randint(int(least), int(most)))


def env_secret(rng: random.Random, _: str) -> str:
    """Return the name of a variable that holds a key or token."""
    ends = (
        "API_KEY API_TOKEN SECRET SECRET_KEY TOKEN ACCESS_TOKEN AUTH_TOKEN CLIENT_SECRET "
        "PRIVATE_KEY SIGNING_KEY ENCRYPTION_KEY WEBHOOK_SECRET API_SECRET APIKEY REFRESH_TOKEN "
        "BEARER_TOKEN SIGNING_SECRET SHARED_SECRET MASTER_KEY PAT HMAC_KEY DEPLOY_TOKEN BOT_TOKEN "
        "APP_SECRET SESSION_KEY CREDENTIAL AUTH AUTH_KEY SECRET_TOKEN API_KEY TOKEN SECRET".split()
    )
    return f"{rng.choice(POOLS['SVC'])}_{rng.choice(ends)}"


def env_password(rng: random.Random, _: str) -> str:
    """Return the name of a variable that holds a password."""
    ends = (
        "PASSWORD PASSWORD PASSWORD PASSWORD PASS DB_PASSWORD USER_PASSWORD PASSWD PWD DB_PASS PW "
        "PASSPHRASE".split()
    )

    more = "DB REDIS POSTGRES MYSQL SMTP RABBITMQ ELASTIC MONGO FTP LDAP SUDO KEYSTORE".split()
    return f"{rng.choice((*POOLS['SVC'], *more))}_{rng.choice(ends)}"


def in_snake(rng: random.Random, name: str) -> str:
    """Return a secret's name in small letters with underscores."""
    return (env_secret if name == "key" else env_password)(rng, "").lower()


def in_camel(rng: random.Random, name: str) -> str:
    """Return a secret's name as one word with humps."""
    first, *rest = in_snake(rng, name).split("_")
    return first + "".join(each.capitalize() for each in rest)


def in_kebab(rng: random.Random, name: str) -> str:
    """Return a secret's name in small letters with dashes."""
    return in_snake(rng, name).replace("_", "-")


def typo(rng: random.Random, text: str) -> str:
    """Return a text with one letter dropped, doubled or swapped, or none."""
    at = rng.randrange(1, len(text) - 1)
    return rng.choice((
        text, text, text,
        text[:at] + text[at + 1 :],
        text[:at] + text[at] + text[at:],
        text[:at] + text[at + 1] + text[at] + text[at + 2 :],
    ))  # fmt: skip


def quoted(rng: random.Random, field: str) -> str:
    """Return a password with the signs of a URL written as percent codes."""
    made = password(rng, field)
    codes = {"@": "%40", "#": "%23", "!": "%21", "%": "%25", "&": "%26", "?": "%3F", "$": "%24"}
    return "".join(codes.get(c, c) for c in made)


FIELDS: dict[str, Callable[[random.Random, str], str]] = {
    "x": pattern, "pw": password, "human": human, "plain": plain, "mixed": mixed,
    "phrase": phrase, "key": opaque, "coded": coded, "basic": basic, "jwt": jwt,
    "pem": lines_of_key, "uuid": uuid, "date": date, "at": stamp, "num": number, "NAME": env_secret,
    "PNAME": env_password, "snake": in_snake, "camel": in_camel, "kebab": in_kebab, "typo": typo,
    "urlpw": quoted,
    "seed": lambda rng, _: " ".join(rng.sample(POOLS["word"], SEED_WORDS)),
    "pick": lambda rng, choices: rng.choice(choices.split("|")),
    "sha": lambda rng, _: pattern(rng, "%h40"),
    "sha7": lambda rng, _: pattern(rng, "%h7"),
    "ip": lambda rng, _: ".".join(number(rng, "1 254") for _ in range(4)),
    "ver": lambda rng, _: f"{number(rng, '0 24')}.{number(rng, '0 30')}.{number(rng, '0 20')}",
    "email": lambda rng, _: f"{rng.choice(POOLS['user'])}@{rng.choice(POOLS['company'])}.io",
}  # fmt: skip
"""Fields by name; any other name is a pool of words."""


def value(rng: random.Random, name: str, argument: str) -> str:
    """Return a drawn value of a field."""
    made = FIELDS.get(name)
    return made(rng, argument) if made else rng.choice(POOLS[name])
