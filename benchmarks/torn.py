"""How many fragments do not stand alone: report headings, references, leads without a list.

    uv run lore export memory.jsonl
    uv run python benchmarks/torn.py memory.jsonl [--show]

A rough count by first and last words, made to compare two versions: a heading that names its
subject ('Changes made to index.html: …') counts as torn too.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from pathlib import Path

MARKS = {
    "heading": re.compile(
        r"^\W*(?:\d{1,2}[.)]\s|[✅❌⚠☑✔✓🎉🔧🚀]|(?:summary|what(?:'s| i| was| we| has)|key|changes?"
        r"|files?|fix(?:es)?|issues?|problems?|result|performance|added|updated|benefits?|evidence"
        r"|completed|current|new|modified|here(?:'s)?|why|how|status|next|commit|verification"
        r"|findings?|impact|implementation|found|both|done|operational|note|cause|solution)\b"
        r"[\w' /()\-,.]{0,60}: +\S)",
        re.IGNORECASE,
    ),
    "reference": re.compile(
        r"^\W*(?:however|then|these|those|this|that|they|it|its|it's|also|additionally|therefore"
        r"|thus|hence|so|but|and|or|otherwise|instead|meanwhile|moreover|furthermore|besides"
        r"|as a result|in this|in that|in these|in both|with this|with these|because of this"
        r"|for this|after this|after that|before that|finally|next|both|same|such|either|neither"
        r"|here's|here is|here are|there|still|yet|though|similarly|likewise|consequently"
        r"|afterwards?|again|else|where|which|the (?:first|second|third|last|latter|former|other"
        r"|next|above|following|same))\b",
        re.IGNORECASE,
    ),
    "colon": re.compile(r":\s*$"),
}


def main() -> None:
    """Count the fragments of an export, and print those that are torn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("export", type=Path)
    parser.add_argument("--show", action="store_true", help="print them")
    options = parser.parse_args()
    rows = map(json.loads, options.export.read_text("utf-8").splitlines())
    kept = [row for row in rows if row.get("record") == "fragment" and row["kind"] != "episode"]
    counts: Counter[str] = Counter()
    for row in kept:
        texts = {"colon": row["summary"]}
        marks = [
            name for name, mark in MARKS.items() if mark.search(texts.get(name, row["content"]))
        ]
        counts.update([*marks, *(["any"] if marks else [])])
        if marks and options.show:
            print(f"{', '.join(marks)}: {row['content'][:200]!r}")
    print(f"{len(kept)} fragments, torn {counts['any'] / max(1, len(kept)):.1%}, {dict(counts)}")


if __name__ == "__main__":
    main()
