"""Nested values are redacted as what they are: a value belongs to its name."""

from __future__ import annotations

import pytest

from lore.redaction import UNKEPT, redact_tree

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
def test_a_secret_is_known_by_the_name_in_the_field_beside_or_above_it(tree):
    told = str(redact_tree(UNKEPT, tree))
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
def test_what_is_no_secret_stays_as_it_is(tree):
    assert redact_tree(UNKEPT, tree) == tree
