"""Secret names: which names of variables, fields, flags and headers hold a secret."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

from lore.text.later import compile_later

__all__ = ["NameKind", "classify", "means_secret"]

NameKind = Literal["", "password", "pass", "phrase", "secret", "key", "auth", "cookie"]
"""What a name promises: `pass` and `auth` also mean other things, so their value must convince."""

_HUMP = compile_later(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")

_CLOUD_HOST = compile_later(r"\.[\w\-]+\.[a-z]+\.core\.windows\.net$")
"""The account whose key a setting of a storage driver holds; it stands last."""

_KINDS: dict[str, NameKind] = {
    **dict.fromkeys(
        """passwort kennwort passcode pwd pword passw pw pswd psw contrasena senha wachtwoord
        motdepasse mdp parola heslo haslo community psk salasana lozinka jelszo losenord passord
        pasword passsword passowrd passwrod passwrd pssword paswrod passwod passwor pswrd
        paswd passworrd passwordd passsord passeord passwork apssword psasword pasw
        passwordnya passwordku passordet passordene passwortes sandi kodeord adgangskode
        sifre wachtwoorden authtok""".split(),
        "password",
    ),
    **dict.fromkeys(("passphrase", "mnemonic"), "phrase"),
    **dict.fromkeys(
        """credential credentials creds jwt bearer tokn tokne toekn tokken secert sercet secrt
        secrect sceret credentails pat totp macaroon pepper ikey skey
        hmac""".split(),
        "secret",
    ),
    **dict.fromkeys(("auth", "authorization", "sessid", "jsessionid", "phpsessid"), "auth"),
    **dict.fromkeys(("cookie", "cookies"), "cookie"),
}
_PASSWORD_ENDINGS = ("password", "passwd", "pass", "passphrase", "pwd", "pw", "passwort")
_NO_PASSWORDS = frozenset(("bypass", "compass", "pass", "cwd"))
_SECRET_ENDINGS = (
    "secret", "token", "apikey", "secretkey", "accesskey", "privatekey", "authkey", "signingkey",
    "encryptionkey", "masterkey", "accountkey", "sharedkey", "appkey", "passkey", "seckey",
    "privkey", "hmackey", "aeskey", "rootkey", "localkey",
)  # fmt: skip
_TRAILING = frozenset(
    """prod production dev development staging stage test testing live default value val base64
    b64 old new current env var plain plaintext raw text primary secondary backup main v1 v2 v3
    encoded header local global shared literal str string base basic equals set bytes data field
    property plainvalue hardcoded content initial""".split()
)
_NEVER = frozenset(
    """public publishable hash hashed digest idempotency i18n csrf xsrf encrypted ciphertext sealed
    wrapped utm fingerprint thumbprint address contract arn erc20 nft""".split()
)
_NEVER_BESIDE = frozenset(
    """page continuation cursor sync max min num number cache primary foreign partition sort row
    lookup dedupe react translation count usage lexer parser syntax design semantic""".split()
)
"""Words that make a key or token a plain one right before it: sort_key, but not SORT_API_KEY."""

_FLEETING = frozenset("confirm confirmation forgot reset change invite verification".split())
"""Names of forms and columns too, so only what is plainly drawn by lot is taken for a secret."""

_PHRASES = frozenset("seed recovery backup wallet secret mnemonic".split())
_KEPT_SALTS = frozenset("hash auth nonce logged secure cookie session app signing".split())
_COUNTED = frozenset("next eos bos pad sep cls mask unk special prompt completion".split())
"""Tokens of pages and of models."""

_ONE_TIME = frozenset("otp totp hotp mfa 2fa fa authenticator string base32".split())
_PROGRAMS = frozenset("erlang erl release rabbitmq xauth rpc".split())
"""Programs that call a secret between them a cookie."""

_LEADING = frozenset("password passwd pwd passphrase secret token apikey credentials".split())
_PROPERTIES = frozenset(
    """id ids name names file path dir folder url uri link endpoint host type kind class length len
    size limit age ttl expiry expires expiration timeout seconds minutes hours days date time at
    policy rule regex pattern format field input label hint placeholder title text description
    error message manager store storage provider service factory ref reference arn version
    address contract symbol pool mint sha sha1 sha256 md5 checksum fingerprint etag salt index
    bucket rate source scope scopes issuer audience family status state required enabled exists
    column table key keys set list map stream""".split()
)
"""What a secret has but is not itself."""

_KEY_MEANS_SECRET = frozenset(
    """api access secret private auth encryption encrypt decryption signing sign master account
    app application admin service subscription client webhook deploy ssh storage jwt hmac
    crypto cipher preshared aes rsa license shared server integration ingest dd datadog
    openai anthropic stripe twilio sendgrid mailgun azure aws google gcp gemini mistral cohere
    groq xai openrouter perplexity replicate together deepseek fireworks pinecone algolia
    cloudflare cf newrelic relic heroku vercel netlify linear notion airtable supabase
    firebase sentry segment amplitude mixpanel fernet symmetric bot
    flask django rails nextauth laravel elastic huggingface hf tavily serp maps wandb mapbox
    cosmos cosmosdb consumer partner merchant functions function insert rapidapi write ingestion
    query validation routing machine
    unseal root recovery enroll join wallet seed totp otp mfa vapid nats smtp db database
    wg local gossip material unlock activation product signature presharedkey nonce logged secure
    keystore truststore cookie session token upload release publish push agent host device tenant
    workspace team environment sdk snmp radius tacacs isakmp ike ipsec vpn wifi wpa wep hub
    telegram discord slack github gitlab bitbucket npm pypi nuget brevo resend postmark mailchimp
    mailjet plaid paypal braintree adyen square shopify hubspot salesforce zendesk intercom
    twitch spotify weather openweather openweathermap tmdb alchemy infura etherscan binance
    coinbase kraken exa brave serper jina voyage deepgram assemblyai elevenlabs stability runpod
    modal dashscope moonshot zhipu minimax nvidia cerebras sambanova deepinfra langfuse langsmith
    langchain helicone braintrust weaviate qdrant typesense meili meilisearch clerk auth0 okta
    workos posthog launchdarkly statsig loggly papertrail honeycomb honeybadger bugsnag rollbar
    pagerduty opsgenie grafana digitalocean do linode vultr hetzner fly railway render
    planetscale neon turso upstash mongodb atlas vault consul doppler infisical snyk sonar
    codecov circleci travis buildkite jenkins docker jfrog tailscale ngrok cloudinary
    pusher ably pubnub vonage nexmo messagebird telnyx zoom dropbox figma asana trello clickup
    jira confluence firecrawl apify browserbase composio lob easypost shippo""".split()
)


_BY_COMPANY: dict[str, tuple[frozenset[str], NameKind]] = {
    **dict.fromkeys(("phrase", "words"), (_PHRASES, "phrase")),
    **dict.fromkeys(("key", "keys", "pass", "cookie"), (frozenset(), "")),
    "material": (frozenset(("key",)), "password"),
    "seed": (_ONE_TIME, "secret"),
}
"""Words that mean a secret behind certain others."""


@lru_cache(maxsize=4096)
def classify(name: str) -> NameKind:
    """Tell what a name promises of its value."""
    words = [word.lower() for word in _HUMP.findall(_CLOUD_HOST.sub("", name))]
    while len(words) > 1 and (words[-1] in _TRAILING or words[-1].isdigit()):
        words.pop()
    if not words:
        return ""
    last, before = words[-1], words[:-1]
    if last in ("salt", "hash"):
        return _salt(before)
    counted = last == "token" and not _COUNTED.isdisjoint(before) and "auth" not in before
    if counted or not _NEVER.isdisjoint(words) or _NEVER_BESIDE.intersection(words[-2:]):
        return ""
    if not _FLEETING.isdisjoint(words):
        return "auth" if last == "token" else ""
    last = "key" if last == "kye" else last
    if last in _BY_COMPANY:
        return _by_company(name, last, before)
    return _KINDS.get(last) or _by_ending(last) or _by_beginning(words) or _by_whole(name, words)


def _by_whole(name: str, words: list[str]) -> NameKind:
    """Tell what a name promises whose last word alone promises nothing."""
    if words[-2:] in (["secret", "id"], ["sonar", "login"]):
        return "secret"
    return "auth" if words[-1] == "session" and len(words) > 1 and name.isupper() else ""


def means_secret(word: str) -> bool:
    """Tell whether a key of what a word names is a secret one: of a provider, of an API."""
    return word.lower() in _KEY_MEANS_SECRET


def _by_company(name: str, last: str, before: list[str]) -> NameKind:
    """Tell what a word promises that means a secret in some company only."""
    if last in ("key", "keys"):
        return _key(name, before)
    if last == "pass":
        return "password" if before else "pass"
    if last == "cookie":
        return "cookie" if _PROGRAMS.isdisjoint(before) else "secret"
    company, kind = _BY_COMPANY[last]
    return "" if company.isdisjoint(before) else kind


def _salt(before: list[str]) -> NameKind:
    """Tell whether a salt or hash is one that an application keeps secret, as some do."""
    return "secret" if before[-1:] == ["api"] or not _KEPT_SALTS.isdisjoint(before) else ""


def _by_ending(word: str) -> NameKind:
    """Tell what a name promises that is written in one: PGPASSWORD, authtoken, dbpass."""
    if word.endswith(_PASSWORD_ENDINGS) and word not in _NO_PASSWORDS:
        return "password"
    return "secret" if word.endswith(_SECRET_ENDINGS) else ""


def _by_beginning(words: list[str]) -> NameKind:
    """Tell what a name promises that says whose it is last: TOKEN_GITHUB, secretStripe."""
    if len(words) < 2 or words[-1] in _PROPERTIES:
        return ""
    if words[0] in ("password", "passwd", "pwd"):
        return "pass"
    named = words[0] in _LEADING or (len(words) > 2 and words[:2] == ["api", "key"])
    return "auth" if named else ""


def _key(name: str, before: list[str]) -> NameKind:
    if not _KEY_MEANS_SECRET.isdisjoint(before):
        return "secret"
    return "key" if before and name.rstrip("sS0123456789_").endswith("KEY") else ""
