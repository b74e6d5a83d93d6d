"""The values that fields of the fourth corpus are drawn from."""

from __future__ import annotations

import base64
import json
import random
import string
import uuid
from collections.abc import Callable

from fourth_words import WORDS

__all__ = ["value"]

Draw = Callable[[random.Random, str], str]

ALPHABETS = {
    "hex": "0123456789abcdef",
    "HEX": "0123456789ABCDEF",
    "digits": string.digits,
    "alnum": string.ascii_letters + string.digits,
    "lower": string.ascii_lowercase + string.digits,
    "upper": string.ascii_uppercase + string.digits,
    "letters": string.ascii_letters,
    "b32": string.ascii_uppercase + "234567",
    "b58": "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz",
    "b64u": string.ascii_letters + string.digits + "-_",
    "bech": "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L",
}
MARKS = "!#%*+-_.?^~@"
"""Signs in a password that need no quoting where it stands."""

WIDTH = 64
"""Characters of a line of a PEM file."""

JOINS = {
    "nl": "\n", "esc": "\\n", "esc2": "\\\\n", "space": " ", "two": "\n  ", "four": "\n    ",
    "eight": "\n        ", "plus": "\n+", "quote": '\\n"\n    "', "concat": "\\n' +\n  '",
    "crlf": "\\r\\n", "gt": "\n> ", "bar": "\n | ",
}  # fmt: skip
"""What stands between the lines of a key, by the wrapping."""


def chars(rng: random.Random, alphabet: str, size: str) -> str:
    """Return so many characters; a size is a number or two with a dash between."""
    low, _, high = size.partition("-")
    many = rng.randint(int(low), int(high or low))
    return "".join(rng.choices(ALPHABETS[alphabet], k=many))


def b64(rng: random.Random, size: str) -> str:
    """Return base64 of so many random bytes, padded."""
    low, _, high = size.partition("-")
    return base64.b64encode(rng.randbytes(rng.randint(int(low), int(high or low)))).decode()


def one_word(rng: random.Random) -> str:
    """Return a word that people build passwords of."""
    return rng.choice(WORDS[rng.choice(("noun", "noun", "noun", "noun_de", "noun_rom"))])


def leet(rng: random.Random) -> str:
    """Return two words with digits for some letters."""
    text = rng.choice(WORDS["noun"]) + rng.choice(WORDS["noun"]).title()
    swapped = text.translate(str.maketrans("oei", "031"))
    return f"{swapped}{rng.randint(10, 99)}"


def chosen(rng: random.Random, marks: str = MARKS) -> str:
    """Return a password as a person chooses it."""
    shape = rng.randrange(5)
    if shape == 0:
        return f"{one_word(rng).title()}{rng.randint(1960, 2031)}{rng.choice(marks)}"
    if shape == 1:
        return f"{one_word(rng)}-{one_word(rng)}-{rng.randint(10, 999)}"
    if shape == 2:
        return leet(rng) + rng.choice(("", rng.choice(marks)))
    if shape == 3:
        return f"{one_word(rng).title()}{rng.choice(marks)}{rng.randint(1000, 99999)}"
    return f"{one_word(rng).title()}{one_word(rng).title()}{rng.randint(100, 9999)}"


def made(rng: random.Random, marks: str = MARKS) -> str:
    """Return a password as a program makes it."""
    alphabet = ALPHABETS["alnum"] + rng.choice(("", marks))
    inner = "".join(rng.choices(alphabet, k=rng.randint(10, 22)))
    return f"{rng.choice(string.ascii_letters)}{inner}{rng.choice(string.digits)}"


def password(rng: random.Random, arguments: str) -> str:
    """Return a password, of a person or of a program."""
    marks = {"": MARKS, "url": "-_.~!*", "plain": "-_"}[arguments]
    return rng.choice((chosen, made))(rng, marks)


def joined(rng: random.Random, arguments: str) -> str:
    """Return fields and literal words one after the other; a plus stands between them."""
    parts = [part.partition(" ") for part in arguments.split(" + ")]
    return "".join(
        value(rng, name, rest) if name in KNOWN else name + rest for name, _, rest in parts
    )


def phrase(rng: random.Random, arguments: str) -> str:
    """Return a passphrase of words with blanks or dashes between them."""
    return (arguments or " ").join(rng.choices(WORDS["noun"], k=rng.randint(4, 5)))


def token(rng: random.Random, _: str) -> str:
    """Return a random value as services and generators make them."""
    shape = rng.randrange(6)
    if shape < 2:
        return chars(rng, "hex", rng.choice(("32", "40", "48", "64")))
    if shape == 2:
        return b64(rng, rng.choice(("24", "32", "33", "48")))
    if shape == 3:
        return chars(rng, "b64u", "32-48")
    return chars(rng, "alnum", "24-44")


def compact(document: dict[str, object]) -> str:
    """Return JSON in base64 for URLs, without padding."""
    text = json.dumps(document, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def jwt(rng: random.Random, _: str) -> str:
    """Return a signed token with a header, claims and a signature."""
    head = compact({"alg": rng.choice(("HS256", "RS256", "ES256")), "typ": "JWT"})
    issued = rng.randint(1_700_000_000, 1_790_000_000)
    claims: dict[str, object] = {
        "sub": str(rng.randint(10_000, 99_999_999)),
        "iss": f"https://auth.{rng.choice(WORDS['org'])}.com/",
        "iat": issued,
        "exp": issued + 3600,
    }
    if rng.random() < 0.5:
        claims["scope"] = "read:orders write:orders"
    return f"{head}.{compact(claims)}.{chars(rng, 'b64u', rng.choice(('43', '86', '342')))}"


def tunnel(rng: random.Random, _: str) -> str:
    """Return the token of a tunnel: its account, id and secret, in base64."""
    parts = {"a": chars(rng, "hex", "32"), "t": own_uuid(rng, ""), "s": b64(rng, "32")}
    return base64.b64encode(json.dumps(parts, separators=(",", ":")).encode()).decode()


def pem(rng: random.Random, arguments: str) -> str:
    """Return the body of a key: so many lines, joined as the wrapping asks."""
    lines, join = arguments.split()
    start = "MHcCAQEE" if int(lines) < 4 else "MII"
    text = start + b64(rng, str(48 * int(lines)))[len(start) :]
    cut = [text[at : at + WIDTH] for at in range(0, len(text), WIDTH)]
    cut[-1] = cut[-1][: rng.randint(20, 60) // 4 * 4 - 1] + "="
    return JOINS[join].join(cut)


def encoded(rng: random.Random, arguments: str) -> str:
    """Return base64 of another field, or of the words given."""
    name, _, rest = arguments.partition(" ")
    return base64.b64encode(value(rng, name, rest).encode()).decode()


def basic(rng: random.Random, _: str) -> str:
    """Return what stands after Basic in a header."""
    text = f"{rng.choice(WORDS['user'])}:{password(rng, '')}"
    return base64.b64encode(text.encode()).decode()


def wrapped_pem(rng: random.Random, _: str) -> str:
    """Return base64 of a whole private key file."""
    text = f"-----BEGIN PRIVATE KEY-----\n{pem(rng, '4 nl')}\n-----END PRIVATE KEY-----\n"
    return base64.b64encode(text.encode()).decode()


def host(rng: random.Random, _: str) -> str:
    """Return the name of a machine."""
    where = f"{rng.choice(WORDS['org'])}.{rng.choice(WORDS['tld'])}"
    return f"{rng.choice(('db', 'api', 'redis', 'mail', 'vault', 'mq', 'git', 'app'))}.{where}"


def number(rng: random.Random, arguments: str) -> str:
    """Return a whole number between two."""
    low, high = arguments.split()
    return str(rng.randint(int(low), int(high)))


def version(rng: random.Random, _: str) -> str:
    """Return the version of a package."""
    return f"{rng.randint(0, 12)}.{rng.randint(0, 40)}.{rng.randint(0, 20)}"


def moment(rng: random.Random, _: str) -> str:
    """Return a time as logs write it."""
    day = f"{rng.randint(2024, 2026)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"
    clock = f"{rng.randint(0, 23):02}:{rng.randint(0, 59):02}:{rng.randint(0, 59):02}"
    return rng.choice((
        f"{day} {clock}",
        f"{day}T{clock}Z",
        f"{day}T{clock}.{rng.randint(1, 999)}Z",
    ))


def address(rng: random.Random, _: str) -> str:
    """Return an address inside a network."""
    return f"10.{rng.randint(0, 255)}.{rng.randint(0, 255)}.{rng.randint(1, 254)}"


def path(rng: random.Random, _: str) -> str:
    """Return the path of a source file in a project."""
    return f"{rng.choice(WORDS['dir'])}/{rng.choice(WORDS['app'])}/{rng.choice(WORDS['file'])}"


def mail(rng: random.Random, _: str) -> str:
    """Return somebody's address."""
    return f"{rng.choice(WORDS['first'])}@{rng.choice(WORDS['org'])}.{rng.choice(WORDS['tld'])}"


def mnemonic(rng: random.Random, _: str) -> str:
    """Return the twelve words of a wallet."""
    return " ".join(rng.sample(WORDS["noun"], 12))


def own_uuid(rng: random.Random, _: str) -> str:
    """Return a random uuid."""
    return str(uuid.UUID(int=rng.getrandbits(128), version=4))


def own_kind(rng: random.Random, arguments: str) -> str:
    """Return one of some words that stand in the template."""
    return rng.choice(arguments.split("|"))


def title(rng: random.Random, arguments: str) -> str:
    """Return another field with a capital letter."""
    return value(rng, arguments, "").capitalize()


VALUES: dict[str, Draw] = {
    "pw": password, "phrase": phrase, "tok": token, "jwt": jwt, "pem": pem, "b64": b64,
    "enc": encoded, "basic": basic, "pem64": wrapped_pem, "host": host, "n": number,
    "ver": version, "at": moment, "ip": address, "path": path, "mail": mail, "uuid": own_uuid,
    "pick": own_kind, "title": title, "cat": joined, "made": lambda rng, _: made(rng),
    "mnemonic": mnemonic, "tunnel": tunnel,
}  # fmt: skip
"""What a field means, besides the alphabets and the words."""

KNOWN = frozenset((*VALUES, *ALPHABETS, *WORDS))


def value(rng: random.Random, name: str, arguments: str) -> str:
    """Return a value for a field; an unknown name is an error."""
    if name in ALPHABETS:
        return chars(rng, name, arguments)
    if name in WORDS:
        return rng.choice(WORDS[name])
    return VALUES[name](rng, arguments)
