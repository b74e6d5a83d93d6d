"""Redactor: what is redacted, what stays, and the marks."""

from __future__ import annotations

import re
import string
import sys
from types import FrameType
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore.errors import InvalidInput
from lore.redaction.redactor import EPHEMERAL_REDACTOR, Redactor, redact_tree

REDACTOR = Redactor(b"k" * 32)
ALNUM = string.ascii_letters + string.digits
TOKEN = "Zq7Rw2Lk9Xv4Bn6Tm1Pd8Hs3Jf5Gc0Ya2We4"
MARK = re.compile(r"\[secret:[a-z0-9-]+:[0-9a-f]{8}\]")

SECRETS = [
    ("anthropic", f"sk-ant-api03-{TOKEN}", "key {}"),
    ("github", f"ghp_{TOKEN}", "git clone https://{}@github.com/a/b"),
    ("github", f"ghp_{TOKEN}", "line\\n{}\\nline"),
    ("google-api", f"AIza{TOKEN}", "?key={}&q=1"),
    ("jwt", f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.{TOKEN}", "sent {}."),
    ("password", "Tr0ub4dor&3", '{{"password": "{}"}}'),
    ("password", "Tr0ub4dor&3", '{{\\"password\\": \\"{}\\"}}'),
    ("password", "Tr0ub4dor&3", "export DB_PASSWORD={}"),
    ("password", "Tr0ub4dor&3", "curl -u bob:{} https://example.com"),
    ("password", "correct-horse-battery-staple", "DB_PASSWORD={}"),
    ("url-password", "s3cr3tpw", "postgres://bob:{}@db.internal/app"),
    ("secret", TOKEN, "MISTRAL_API_KEY={}"),
    ("key", f"acme_{TOKEN}", "using {} now"),
    ("lore", f"lore_0a1b2c3d4e_{TOKEN}_-x9Ab3", "curl -H 'Authorization: Bearer {}'"),
    ("lore", f"lore_local_{TOKEN}-_x9Ab3", "cat access.key\n{}\n"),
    ("secret", "Copper-canyon-0838", 'COOKIE_SECRET = "{}"'),
    ("secret", TOKEN, "TOKEN_GITHUB={}"),
    ("secret", TOKEN, 'process.env.JWT_SECRET ?? "{}"'),
    ("secret", TOKEN, "https://example.com/reset?reset_token={}"),
    ("secret", TOKEN, "https://example.com/v1?key={}"),
    ("secret", TOKEN, '<string name="api_key">{}</string>'),
    ("password", "jq5hfsO.nmDljp", "PGPASSWORD={}"),
    ("password", "Gr4nite!Owl92", "password: |\n  {}\n"),
    ("password", "Gr4nite!Owl92", "password = SecretStr('{}')"),
    ("password", "Gr4nite!Owl92", 'variable "db_password" {{\n  default = "{}"\n}}'),
    ("password", "Gr4nite!Owl92", "server.login('bob', '{}')"),
    ("password", "Gr4nite!Owl92", "page.getByLabel('Password').fill('{}')"),
    ("password", "Gr4nite!Owl92", "echo '{}' | docker login -u bob --password-stdin"),
    ("password", "Gr4nite!Owl92", "net user bob {} /add"),
    ("password", "Gr4nite!Owl92", "I changed the root password to {} today"),
    ("password", "Gr4nite!Owl92", "{} is the new password"),
    ("password", "Gr4nite!Owl92", "la contraseña es {}"),
    ("password", "Gr4nite!Owl92", "Пароль от сервера: {}"),
    ("password", "Gr4nite!Owl92", "数据库密码是{}"),
    ("password", "velvet-otter-canyon-37", "the wifi password is {}"),
    ("password", "velvet-otter-canyon-37", "mein Kennwort lautet „{}“"),
    ("password", "velvet-otter-canyon-37", "пароль: {}"),
    ("password", "velvet-otter-canyon-37", "비밀번호: {}"),
    ("password", "bK!tYrpLqZ", "teh pasword is {}"),
    ("password", "bK!tYrpLqZ", "lösenordet är {}"),
    ("password", "Marten4471", "パスワードは「{}」です"),
    ("password", "Marten4471", "log in as bob with {}"),
    ("password", "Marten4471", "fill_in 'Password', with: '{}'"),
    ("password", "Marten4471", "await page.type('input[name=\"password\"]', '{}')"),
    ("password", "Marten4471", '{{"element":"Password field","ref":"e4","text":"{}"}}'),
    ("password", "Marten4471", "userEvent.type(passwordInput, '{}')"),
    ("password", "Marten4471", "Input Password    id=password    {}"),
    ("password", "Marten4471", "reg add HKLM\\a /v DefaultPassword /t REG_SZ /d {} /f"),
    ("password", "Marten4471", "['mysql', '-uroot', '-p{}', 'shop']"),
    ("password", "Marten4471", "echo '{}' | docker login -u bob --password-stdin r.example.com"),
    ("password", "Mt,f6wXcPisQzv", "liquibase.command.password: {}"),
    ("secret", TOKEN, "SORT_WIDGET_API_KEY={}"),
    ("secret", TOKEN, "API 키는 {} 입니다"),
    ("secret", "Heron5158Lantern", "   12→$ pass show mail\n   13→{}"),
    ("url-password", "Marten4471", "postgres%3A%2F%2Fbob%3A{}%40db%2Fapp"),
    ("url-password", "Gr4nite92", "bob:{}@tcp(10.0.0.1:3306)/shop"),
    ("password", "heron.lantern.374", 'db_password = "{}"'),
    ("secret", "Heron5158Lantern", "$ vault kv get -field=password secret/app\n{}"),
    ("secret", "Heron5158Lantern", "Generated admin password:\n\n  {}\n"),
    ("password", "Heron5158Lantern", "| user | password |\n|---|---|\n| bob | {} |"),
    ("password", "Heron5158Lantern", "user,password\nbob,{}"),
    ("password", "Heron5158Lantern", "I set the root password to {} on db-4.example.com"),
    ("password", "Heron5158Lantern", "INSERT INTO u (name, password) VALUES ('bob', '{}')"),
    ("password", "Heron5158Lantern", "\x1b[1mpassword\x1b[0m: \x1b[33m{}\x1b[0m"),
    ("password", "wqhz-tqzn-fydz-jsvo", "the app password is {}"),
    ("secret", TOKEN, "encryption:\n  key: {}"),
    ("secret", TOKEN, "jwt.sign(payload, '{}')"),
    ("secret", TOKEN, "expect(session.accessToken).toBe('{}')"),
    ("otp-seed", "W3RZQIMYVKCYF5GF", "oathtool --totp -b {}"),
    ("recovery-code", "f035e-fe112", "backup code: {}"),
    ("authorization", TOKEN, "Authorization: Bearer {}"),
    ("cookie", "a8f5f167f44f4964e6c998dee827110c", "Cookie: session={}; theme=dark"),
]
BENIGN = [
    "password: str", "token = get_token()", "PASSWORD=${DB_PASSWORD}",
    'key = os.environ["API_KEY"]',
    "api_key=<your-key>", "TOKEN=xxxxxxxxxxxxxxxx",
    "commit 3f2a9c81b7d64e05a1c2f3b4d5e6f7a8b9c0d1e2",
    '"tool_use_id":"toolu_01AbCdEf23GhIjKl45MnOpQr"', "postgres://user:password@localhost/db",
    "the token is missing", "max_tokens=4096", "--- PASS: TestGetOrCreateSessionID (0.03s)",
    "mysql -u bob -p orders", "db_password: !vault_ref orders", "token: session.accessToken",
    '["tests pass.", "2026-01-21T06:49:06.938Z"]', "~/projects/-Users-bob-cli/agent-aa996db.jsonl",
    "password: ENC[AES256_GCM,data:kT7yN2pQ,iv:aB3dE5fG7hJ9,tag:qW2eR4tY6u,type:str]",
    "ERC20 token 0xa8c49a85d5f303a05aebbfb03fa9cca918dc9f0f has 43 holders",
    "    password: SecretStr = Field(min_length=71)",
    "git log --grep token\n3f2a9c81b7d64e05a1c2f3b4d5e6f7a8b9c0d1e2",
    "| token | count |\n|---|---|\n| the | 1204 |", "the token limit is 200k, not 128k",
    "docker run -p 8080:80 nginx", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ2k3m4n5 me@host",
    "the password is end-to-end encrypted", "password must be at least 12 characters",
    "Das Passwort steht in der Datei config2.yaml.", "密码使用 bcrypt 哈希 cost=12",
    "der Schlüssel lautet user-profile-card-2", "the password is in auth-service-v2",
    "Get:5 http://deb.debian.org/debian bookworm/main amd64 passwd amd64 1:4.13+dfsg1-1 [413 kB]",
    "ii  passwd  1:4.8.1-1ubuntu5.20.04.5  amd64", "page.fill('#username', 'standard_user')",
    "fill_in 'Password', with: user.password", "enable secret scanning for the repo",
    "log in as bob with your GitHub account", "(using password: YES)", "sort_key: created_at_2",
    "echo $PASS | docker login -u bob --password-stdin ghcr.io", '"admin" "editor2"',
]  # fmt: skip
PIECES = st.sampled_from([
    "password=", "token: ", "://a:", "@", '"', "\\n", "sk-ant-", TOKEN, "[secret:a:00000000]",
    "-----BEGIN PRIVATE KEY-----", "Cookie: a=", "é", "\ud800", " ", "\n", "Bearer ", "=",
    "eyJ", ".",
])  # fmt: skip


@pytest.mark.parametrize(("kind", "secret", "line"), SECRETS)
def test_a_secret_becomes_a_mark_of_its_kind(kind: str, secret: str, line: str):
    text = line.format(secret)
    redacted = REDACTOR.redact(text)
    assert secret not in redacted
    assert f"[secret:{kind}:" in redacted
    (found,) = REDACTOR.find(text)
    assert text[found[0] : found[1]] == secret


@pytest.mark.parametrize("line", BENIGN)
def test_benign_text_stays(line: str):
    assert REDACTOR.redact(line) == line


@pytest.mark.parametrize("joint", ["\n", "\\n"])
@pytest.mark.parametrize("end", ["", "-----END RSA PRIVATE KEY-----"])
def test_a_private_key_is_redacted_as_a_whole(joint: str, end: str):
    lines = [TOKEN + TOKEN[:28]] * 5
    text = joint.join(["-----BEGIN RSA PRIVATE KEY-----", *lines, end])
    redacted = REDACTOR.redact(f"see\n{text}")
    assert TOKEN[:20] not in redacted
    assert redacted.startswith("see\n[secret:private-key:")


def test_a_key_that_a_zero_byte_splits_is_found_in_both_pieces():
    redacted = REDACTOR.redact(f"use ghp_{TOKEN[:18]}\0{TOKEN[18:]} now")
    assert TOKEN[:12] not in redacted
    assert TOKEN[24:] not in redacted


def test_a_seed_phrase_is_redacted_as_a_whole():
    words = "abandon bamboo canyon dolphin eagle fabric galaxy island jungle kitten ladder marble"
    assert REDACTOR.redact(f"Your seed phrase:\n{words}\n").count("[secret:seed-phrase:") == 1
    assert "dolphin" not in REDACTOR.redact(f"Your seed phrase:\n{words}\n")


def test_the_same_secret_has_the_same_mark_with_the_same_key_only():
    text = f"ghp_{TOKEN}"
    assert REDACTOR.redact(text) == Redactor(b"k" * 32).redact(text)
    assert REDACTOR.redact(text) != Redactor(b"l" * 32).redact(text)


@pytest.mark.parametrize("row", ["12345678", "abcdefghij", "0123456789"])
@pytest.mark.parametrize("start", ["sk-ant-api03-", "ghp_", "AIza"])
def test_a_key_with_a_short_sequence_is_a_key(start: str, row: str):
    key = f"{start}{TOKEN[:9]}{row}{TOKEN[9:]}"
    assert MARK.fullmatch(REDACTOR.redact(key))


@pytest.mark.parametrize(
    "example",
    [
        "ghp_1234567890abcdefghijklmnopqrstuvwxyz",
        "sk-1234567890abcdef1234567890abcdef",
        "AKIAABCDEFGHIJKLMNOP",
        "xoxb-123456789012-1234567890123-AbCdEfGhIjKlMnOpQrStUvWx",
    ],
)
def test_a_key_that_is_mostly_a_sequence_is_an_example(example: str):
    assert REDACTOR.redact(example) == example


@pytest.mark.parametrize("place", ["SECRET_KEY_BASE={}", 'secret_key_base: "{}"'])
def test_the_key_base_of_an_application_is_a_secret(place: str):
    assert TOKEN not in REDACTOR.redact(place.format(TOKEN + TOKEN[:28]))


def test_a_custom_pattern_redacts_its_group_or_the_whole_match():
    own = Redactor(b"k", patterns=[r"ACME-\d+", r"badge (\w+)"])
    redacted = own.redact("ACME-123 has badge é77 and badge x9")
    assert len(MARK.findall(redacted)) == 2 + (r"é" not in redacted)
    assert "ACME" not in redacted
    assert "badge [secret:custom:" in redacted


@pytest.mark.parametrize(
    "line",
    [
        "run brew upgrade postgresql@17 then restart",
        "Connect to postgresql@17 on port 5432",
        "the login page needs react@19",
        "the login button has `bg-gradient-to-r from-emerald-500 hover:from-emerald-600`",
        "sign in: the &#96;default_unit_amounts&#96; of Incomplete Price Tiers&#96; as a user",
    ],
)
def test_versions_classes_and_entities_stay_beside_words_of_logins(line: str):
    assert REDACTOR.redact(line) == line


def test_a_word_and_a_number_after_the_name_of_a_password_is_one():
    for line in ("password: sunshine@17", "the password is sunshine@17"):
        assert "sunshine@17" not in REDACTOR.redact(line)


def test_an_allowed_value_stays():
    text = f"ghp_{TOKEN}"
    assert Redactor(b"k", allow=[r"ghp_Zq7\w+"]).redact(text) == text
    assert Redactor(b"k", allow=[r"ghp_"]).redact(text) != text


def test_an_invalid_pattern_is_an_error_that_names_it():
    with pytest.raises(InvalidInput, match=r"\(\?=x\)"):
        Redactor(b"k", patterns=["(?=x)"])


def test_a_value_is_judged_with_its_name():
    assert REDACTOR.redact("Tr0ub4dor&3") == "Tr0ub4dor&3"
    assert MARK.fullmatch(REDACTOR.redact("Tr0ub4dor&3", name="dbPassword"))


def test_a_redactor_that_is_off_changes_nothing():
    assert Redactor(b"k", active=False).redact(f"ghp_{TOKEN}") == f"ghp_{TOKEN}"


def test_a_long_secret_is_redacted_to_its_end():
    long = TOKEN * 100
    assert TOKEN[:20] not in REDACTOR.redact(f"API_TOKEN={long} rest")
    assert REDACTOR.redact(f"API_TOKEN={long} rest").endswith(" rest")


@given(st.lists(PIECES | st.text(st.characters(codec=None), max_size=8), max_size=12).map("".join))
def test_redaction_never_fails_and_is_idempotent(text: str):
    once = REDACTOR.redact(text)
    assert REDACTOR.redact(once) == once
    for start, end, _ in REDACTOR.find(text):
        assert 0 <= start < end <= len(text)


@given(st.text(ALNUM, min_size=36, max_size=36), st.sampled_from(["é {} ü", "x\n{}", '"{}"']))
def test_no_generated_key_survives(drawn: str, line: str):
    secret = f"github_pat_9aZ{drawn}"
    redacted = REDACTOR.redact(line.format(secret))
    assert secret not in redacted or not REDACTOR.find(secret)


@pytest.mark.parametrize(("kind", "secret", "place"), SECRETS)
def test_one_scan_of_many_texts_finds_the_secret_of_one(kind, secret, place):
    assert REDACTOR.holds_secret([*BENIGN, place.format(secret), *BENIGN]), kind


def test_one_scan_of_many_texts_keeps_them_apart():
    assert not REDACTOR.holds_secret(["my password:", TOKEN, "token", f"value: {TOKEN}"])


PIECES = st.sampled_from(
    [place.format(secret) for _, secret, place in SECRETS]
    + [*BENIGN, "password", "token:", "login bob", "-----BEGIN RSA PRIVATE KEY-----", TOKEN]
)


@given(st.lists(st.lists(PIECES, max_size=3).map("\n".join), max_size=6))
def test_one_scan_finds_whatever_single_scans_find(texts):
    assert REDACTOR.holds_secret(texts) or not any(map(REDACTOR.find, texts))


def test_an_anchored_custom_pattern_matches_among_many_texts():
    own = Redactor(b"k" * 32, patterns=[r"^\d{6}$"])
    assert own.holds_secret(["a word", "123456"])
    assert not own.holds_secret(["a word", "123456 of them"])


@given(st.uuids(), st.booleans())
def test_a_uuid_alone_is_no_secret_but_may_match_a_pattern_of_the_user(id_: UUID, upper: bool):
    key = str(id_).upper() if upper else str(id_)
    assert REDACTOR.find(key) == []
    own = Redactor(b"k" * 32, patterns=[r"^[0-9a-fA-F\-]{36}$"])
    assert own.find_holders({1: ["a word"], 2: [key]}) == {2}


def test_only_groups_with_a_secret_are_found():
    secret = f"token = {TOKEN}"
    groups = {1: ["a word", secret], 2: ["a word"], 3: ["two\nlines ü"], 5: [f"ü\n{secret}"], 6: []}
    assert REDACTOR.find_holders(groups) == {1, 5}
    own = Redactor(b"k", patterns=[r"\A\d{6}\z"])
    assert own.find_holders({1: ["123456 of them"], 2: ["123456"]}) == {2}


HOSTILE = [
    "token=", "API_KEY=", '"token":"', '\\\\"key\\\\":', "://a:", "[secret:", "Cookie: a=", " -p",
    "echo a | ", "chpasswd ", "-----BEGIN PRIVATE KEY-----", "Passwort ", "eyJ", "password is ",
]  # fmt: skip


def steps_of(text: str) -> int:
    """Return how many calls it takes to redact a text."""
    calls = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        REDACTOR.redact(text)
    finally:
        sys.setprofile(before)
    return calls


@pytest.mark.parametrize("piece", HOSTILE)
def test_redaction_of_hostile_text_takes_linear_time(piece: str):
    steps_of(piece)
    once, twice = (steps_of(piece * count) for count in (400, 800))
    assert twice < 2.2 * once + 200


@pytest.mark.parametrize("piece", [*HOSTILE, "password=", "secret:", "pw=", "token=" * 150 + "\n"])
def test_repeated_text_is_judged_a_few_times_only(piece: str):
    once, more = (steps_of(piece * (size // len(piece))) for size in (20_000, 200_000))
    if not piece.startswith("-----BEGIN"):
        assert more < 2 * once + 200


@pytest.mark.parametrize("piece", HOSTILE)
def test_a_secret_behind_or_among_repetitions_is_found(piece: str):
    many = piece * (8_000 // len(piece))
    line = f'\nDB_PASSWORD="Gr4nite!Owl92" ghp_{TOKEN}\n'
    redacted = REDACTOR.redact(many + line + many + line)
    assert "Gr4nite" not in redacted
    assert TOKEN not in redacted


def crowd(words: int) -> str:
    """Return names of secrets close to each other, in an order that never returns."""
    return "".join(f"password {(number * 7919) % 9973:x} key " for number in range(words))


def test_dense_text_costs_less_than_its_length():
    once, more = (steps_of(crowd(count)) for count in (2_000, 6_000))
    assert more < 2 * once


@pytest.mark.parametrize("secret", ["Gr4nite!Owl92", "velvet-otter-canyon-37", TOKEN])
def test_a_secret_in_dense_text_is_found(secret: str):
    assert secret not in REDACTOR.redact(f"{crowd(3_000)} DB_PASSWORD={secret} {crowd(3_000)}")


def test_a_secret_is_found_among_texts_of_one_line():
    keys = ["toolu_01AbCdEfGh", "0193f3c2-1234-7abc-8def-0123456789ab", "Bash", ""]
    labelled = "The password:\nTr0ub4dor&3x9\n"
    redactor = Redactor(b"a key for this test")
    assert redactor.redact(labelled) != labelled
    assert redactor.holds_secret([*keys, labelled, *keys])
    assert not redactor.holds_secret([*keys, "password:", "Tr0ub4dor&3x9"])


SECRET = "Tr0ub4dor&3zz"


@pytest.mark.parametrize(
    "tree",
    [
        {"username": "ada", "password": SECRET},
        {"name": "password", "value": SECRET},
        {"setting": "DB_PASSWORD", "value": SECRET, "location": ".env"},
        {"Key": "API_TOKEN", "Value": SECRET},
        {"password": {"value": SECRET}},
        {"password": [SECRET]},
        {"env": [{"name": "PORT", "value": "80"}, {"name": "ADMIN_PASSWORD", "val": SECRET}]},
    ],
)
def test_a_secret_is_found_by_the_field_name_beside_or_above_it(tree):
    told = str(redact_tree(EPHEMERAL_REDACTOR, tree))
    assert SECRET not in told
    assert "[secret:" in told


@pytest.mark.parametrize(
    "tree",
    [
        {"setting": "timeout", "value": "30 seconds", "location": "app.toml"},
        {"name": "password policy", "value": "at least twelve characters"},
        {"setting": "max_tokens", "value": "4096", "n": 3, "flags": [True, None]},
        {"name": 7, "value": "seven"},
        {"value": "alone"},
    ],
)
def test_benign_values_stay(tree):
    assert redact_tree(EPHEMERAL_REDACTOR, tree) == tree
