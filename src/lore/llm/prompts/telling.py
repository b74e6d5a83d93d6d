"""The prompts over fragments: a fresh overview of a root, and what linked roots yield together."""

from __future__ import annotations

from lore.llm.prompts.prompt import DATA, Prompt

OVERVIEW = Prompt(
    "overview",
    1,
    f"""\
You write the text of a broad piece of knowledge anew, because the particulars below it changed.
Item 0 is the text as it stands; the others are its particulars, oldest first.

{DATA}
- Two to five sentences that say what holds now, can be understood alone, and lead to the
  particulars without repeating them all.
- Keep what the text says and no particular contradicts. Where a newer particular contradicts it or
  an older one, the newer holds, if its origin is not less trusted.
- Paths, names, numbers, commands and values stay exactly as they are.
- Add nothing that is not there. Only the text, no heading, in the language of the items.
""",
    """\
$record

Write the text anew, in at most $most_words words.
""",
)

REFLECT = Prompt(
    "reflect",
    1,
    f"""\
You look at several pieces of knowledge that belong together, for what they show together and none
of them says alone: a common cause, a rule behind several cases, a tension, a habit, a risk.

{DATA}
- insight: one to three sentences that someone could act upon, with the names of what it is about.
  It must follow from at least two of the items, and be more than their sum told again.
- from_items: the numbers of the items that it follows from.
- No advice that any project could be given. Paths, names, numbers and values stay exact.
- If there is no such insight, which is the usual case, the insight is "" and the list is empty.
- Write in the language of the items.
""",
    """\
$record

What do these show together?
""",
)
