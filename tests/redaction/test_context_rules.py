"""Context rules: values that look like secrets, near words about logins and keys."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore.redaction.context_rules import _BREAK, _find_break, find_by_context
from lore.redaction.redactor import Redactor

REDACTOR = Redactor(b"k" * 32)
PASSWORDS = ("Marten1987!", "willow-otter-41", "HarborLynx2093", "qR7xTz2LmK9w", "tk4m9x2wq7")
KEY = "b1946ac92492d2347c6235b4d2611184e2d8a7f0"


@pytest.mark.parametrize("password", PASSWORDS)
@pytest.mark.parametrize(
    "line",
    [
        'smtp.PlainAuth("", "bob@example.com", "{}", "smtp.example.com")',
        'User.objects.create_user("bob", "bob@example.com", "{}")',
        'bcrypt.hashpw(b"{}", bcrypt.gensalt())',
        'new NetworkCredential("bob", "{}")',
        'WiFi.begin("Cafe", "{}");',
        "can you send me the password?\n{}",
        "creds: bob / {}",
    ],
)
def test_a_password_is_found_by_the_call_that_takes_it(line: str, password: str):
    assert password not in REDACTOR.redact(line.format(password))


@pytest.mark.parametrize(
    "line",
    [
        "const key = Buffer.from('{}', 'hex') // AES-256 key",
        'var key = Encoding.UTF8.GetBytes("{}"); // JWT signing key',
        "my key ends tomorrow anyway, so use it: {}",
        "printf '%s' '{}' > ~/.stripe_token",
    ],
)
def test_a_key_is_found_by_the_words_around_it(line: str):
    assert KEY not in REDACTOR.redact(line.format(KEY))


@pytest.mark.parametrize("quotes", ['"{}"', "'{}'", "“{}”", "«{}»"])
def test_plain_words_in_quotes_are_a_passphrase_where_one_is_named(quotes: str):
    told = quotes.format("lantern meadow walnut otter")
    assert "meadow" not in REDACTOR.redact(f"the passphrase is {told}, all lower case")


@pytest.mark.parametrize(
    "line",
    [
        "ssh deploy@web-12 'systemctl restart app2'",
        'the passphrase is "the one that we use for all of them"',
        "kubectl get secret billing-96580 -o yaml",
        "arn:aws:secretsmanager:eu-west-1:123456789012:secret:billing/db-scsfXh",
        f"git log --grep password --format=%H\n{KEY}",
        f"the cache key is {KEY}",
        "expect(screen.getByLabelText('Password')).toBeInTheDocument();",
        "  password: ${ADMIN_PASSWORD:?not set}",
        '"continue with the login"},"isVisibleInTranscriptOnly":true',
    ],
)
def test_names_hashes_and_sentences_near_such_words_stay(line: str):
    assert REDACTOR.redact(line) == line


def test_a_word_at_the_end_of_a_window_is_judged_as_a_whole():
    line = b"login " + b"- " * 98 + b"toolu_01BQqtnJveHV81fMbS8n5Suj and so on, then login"
    assert not list(find_by_context(line))


def test_every_occurrence_of_a_secret_is_redacted():
    line = "password: Marten1987! and then Marten1987! alone"
    assert "Marten1987" not in REDACTOR.redact(line)


@given(st.text("ab\r\n\\nr\0 ", max_size=14).map(str.encode), st.integers(0, 14))
def test_the_first_line_break_is_that_of_the_pattern(data: bytes, at: int):
    match = _BREAK.search(data, at, len(data))
    assert _find_break(data, at, len(data)) == (match.span() if match else None)
