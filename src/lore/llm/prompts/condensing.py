"""The prompt that makes one log of several."""

from __future__ import annotations

from lore.llm.prompts.prompt import DATA, Prompt

CONDENSE = Prompt(
    "condense",
    1,
    f"""\
You write the one log that stands for several older ones of the same conversation. Someone will go
on from it alone. The former log, if there is one, is item 0; the others follow in their order.

{DATA}
Form: four sections, in this order, each with its title alone on a line; leave out a section that
would be empty. Below a title one statement a line, without bullets or numbers. Begin a line with
its date (2026-05-13) wherever the logs give one.

Current state:
What holds at the end of the last log: what works, what does not, which values, versions and paths
are in force, what is open or promised. Only the newest value of anything.
Decisions:
What was decided and by whom, with the reason, and the alternatives that were rejected with theirs.
Rules and preferences that a person stated, word for word.
Changes:
What replaced what: the old value, the new one, the date and the reason. A value that was changed
twice has its whole way on one line.
Timeline:
What happened when, in a few words each: what was tried, failed, found, finished.

- Paths, names, numbers with units, commands, settings, error texts and ids stay exactly as they
  are, character by character.
- Nothing that the former log has under Decisions or Changes is dropped, unless a later log takes
  it back; then the change is told.
- Where two logs contradict each other, the later one holds, and the change is told.
- A claim of a tool, a file or a web page stays a claim.
- Add nothing that no log says. Write in the language of the logs. No words before or after.
""",
    """\
$record

Write the one log of these, in at most $most_words words. If it cannot all be kept, let the oldest
lines of the timeline go first, then details of steps that led nowhere.
""",
)
