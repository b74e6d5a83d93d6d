"""Secret names: which names of variables, fields, flags and headers hold a secret."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

__all__ = ["NameKind", "classify"]

NameKind = Literal["", "password", "pass", "phrase", "secret", "key", "auth", "cookie"]
"""What a name promises: `pass` and `auth` also mean other things, so their value must convince."""

_HUMP = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")

_KINDS: dict[str, NameKind] = {
    **dict.fromkeys(("passwort", "passcode", "pwd", "pword", "passw"), "password"),
    **dict.fromkeys(("passphrase", "mnemonic"), "phrase"),
    **dict.fromkeys(
        ("credential", "credentials", "creds", "jwt", "bearer", "psk", "pat"), "secret"
    ),
    **dict.fromkeys(("auth", "authorization", "pat"), "auth"),
    **dict.fromkeys(("cookie", "cookies"), "cookie"),
}
_SHORT_PASSWORDS = frozenset(("pass", "pw"))
_PASSWORD_ENDINGS = ("password", "passwd", "pass", "passphrase", "pwd")
_NO_PASSWORDS = frozenset(("bypass", "compass", "pass", "cwd"))
_SECRET_ENDINGS = (
    "secret", "token", "apikey", "secretkey", "accesskey", "privatekey", "authkey", "signingkey",
    "encryptionkey", "masterkey", "accountkey", "sharedkey", "appkey", "passkey",
)  # fmt: skip
_TRAILING = frozenset(
    """prod production dev development staging stage test testing live default value val base64
    b64 old new current env var plain plaintext raw text primary secondary backup main v1 v2 v3
    encoded header local global shared literal str string""".split()
)
_NEVER = frozenset(
    """public publishable page next continuation cursor sync max min num number hash hashed digest
    eos bos pad sep cls mask unk special idempotency cache primary foreign partition sort row
    lookup dedupe react translation i18n count usage prompt completion confirm csrf xsrf forgot
    reset change lexer parser syntax design semantic""".split()
)
_KEY_MEANS_SECRET = frozenset(
    """api access secret private auth encryption encrypt decryption signing sign master account
    app application admin service subscription client webhook deploy ssh storage jwt hmac
    crypto cipher preshared aes rsa license shared server integration ingest dd datadog
    openai anthropic stripe twilio sendgrid mailgun azure aws google gcp gemini mistral cohere
    groq xai openrouter perplexity replicate together deepseek fireworks pinecone algolia
    cloudflare cf newrelic relic heroku vercel netlify linear notion airtable supabase
    firebase sentry segment amplitude mixpanel fernet symmetric bot
    flask django rails nextauth laravel elastic huggingface hf tavily serp maps wandb mapbox
    cosmos cosmosdb consumer partner merchant""".split()
)


@lru_cache(maxsize=4096)
def classify(name: str) -> NameKind:
    """Tell what a name promises of its value."""
    words = [word.lower() for word in _HUMP.findall(name)]
    while len(words) > 1 and (words[-1] in _TRAILING or words[-1].isdigit()):
        words.pop()
    if not words or not _NEVER.isdisjoint(words):
        return ""
    last, before = words[-1], words[:-1]
    if last in _SHORT_PASSWORDS:
        return "password" if before else "pass"
    if last in ("key", "keys"):
        return _key(name, before)
    return _KINDS.get(last) or _by_ending(last)


def _by_ending(word: str) -> NameKind:
    """Tell what a name promises that is written in one: PGPASSWORD, authtoken, dbpass."""
    if word.endswith(_PASSWORD_ENDINGS) and word not in _NO_PASSWORDS:
        return "password"
    return "secret" if word.endswith(_SECRET_ENDINGS) else ""


def _key(name: str, before: list[str]) -> NameKind:
    if not _KEY_MEANS_SECRET.isdisjoint(before):
        return "secret"
    return "key" if before and name.isupper() else ""
