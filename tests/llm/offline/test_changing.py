from __future__ import annotations

import pytest

from lore.llm.offline import changing


@pytest.mark.parametrize(
    ("statement", "former"),
    [
        ("We switched from npm to pnpm.", "npm"),
        ("I moved the launch from May 3 to May 9.", "May 3"),
        ("Replaced `requests` with `httpx`.", "requests"),
        ("We no longer use Jenkins.", "Jenkins"),
        ("We use tabs instead of spaces.", "spaces"),
        ("We use tabs.", ""),
    ],
)
def test_the_former_state_is_what_the_statement_names(statement, former):
    assert changing.replaced(statement) == former
