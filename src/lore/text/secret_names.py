"""Secret names: which names of variables, fields, flags and headers hold a secret."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

__all__ = ["NameKind", "classify"]

NameKind = Literal["", "password", "pass", "secret", "key", "auth", "cookie"]
"""What a name promises: `pass` and `auth` also mean other things, so their value must convince."""

_HUMP = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")

_PASSWORDS = (
    "password", "passwd", "passphrase", "passwort", "passcode", "pwd", "pword", "passw",
)  # fmt: skip
_SECRETS = (
    "secret", "token", "apikey", "secretkey", "accesskey", "privatekey", "authkey", "credential",
    "credentials", "creds", "jwt", "bearer", "psk", "signingkey", "encryptionkey", "masterkey",
    "accountkey", "sharedkey", "appkey", "clientsecret", "authtoken", "pat", "passkey",
)  # fmt: skip
_WHOLE_ONLY = frozenset(("jwt", "psk", "pat", "pwd", "passw", "creds"))
_AUTHS = frozenset(("auth", "authorization"))
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
    crypto cipher preshared aes rsa license shared session server integration ingest write read dd datadog
    openai anthropic stripe twilio sendgrid mailgun azure aws google gcp gemini mistral cohere
    groq xai openrouter perplexity replicate together deepseek fireworks pinecone algolia
    cloudflare cf newrelic relic new heroku vercel netlify linear notion airtable supabase
    firebase sentry segment amplitude mixpanel fernet symmetric root host user vendor bot
    flask django rails nextauth laravel elastic huggingface hf tavily serp maps wandb mapbox
    function functions cosmos cosmosdb redis db database consumer partner merchant""".split()
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
    if last in _PASSWORDS or last.endswith(_PASSWORDS[:4]):
        return "password"
    if last in ("pass", "pw") or (last.endswith("pass") and last not in ("bypass", "compass")):
        return "password" if before or last not in ("pass", "pw") else "pass"
    if last in _SECRETS or last.endswith(tuple(s for s in _SECRETS if s not in _WHOLE_ONLY)):
        return "secret"
    if last in ("key", "keys"):
        return _key(name, before)
    if last in ("cookie", "cookies"):
        return "cookie"
    return "auth" if last in _AUTHS else ""


def _key(name: str, before: list[str]) -> NameKind:
    if not _KEY_MEANS_SECRET.isdisjoint(before):
        return "secret"
    return "key" if before and name.isupper() else ""
