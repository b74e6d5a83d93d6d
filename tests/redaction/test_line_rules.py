"""Line rules: text without a hint at a secret is skipped, and that changes no result."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from lore.redaction.line_rules import find_by_line

ARCHIVE = Path(__file__).parents[2] / "benchmarks" / "data" / "redaction-corpora.jsonl.gz"

FILLER = "The build runs on every push and takes four minutes.\n"
PIECES = st.sampled_from([
    "password:\n", "Your token\n", "Tr0ub4dor&3x9\n", "| user | password |\n|---|---|\n",
    "| bob | Gr4nite!Owl92 |\n", "user,password,role\n", "bob,Gr4nite!Owl92,admin\n",
    "$ vault read x\n", "NAME      SECRET\n", "db1       Zq7-94kd-Xp2m\n", "\\n", "\0", "---\n",
    FILLER, FILLER * 20, FILLER * 60, "x" * 1_500 + "\n", "\n" * 900,
])  # fmt: skip


def has_same_result(text: str) -> bool:
    data = text.encode("utf-8", "surrogatepass")
    return list(find_by_line(data)) == list(find_by_line(data, skip=False))


@given(st.lists(PIECES, max_size=14).map("".join))
def test_skipping_text_without_hints_changes_no_result(text: str):
    assert has_same_result(text)


def test_skipping_text_without_hints_changes_no_result_on_the_corpora():
    with gzip.open(ARCHIVE, "rt", encoding="utf-8", errors="surrogatepass") as stream:
        texts = [json.loads(row)["text"] for row in stream]
    assert all(map(has_same_result, texts))
    spaced = (FILLER * 50).join(texts[::40])
    assert has_same_result(spaced)
