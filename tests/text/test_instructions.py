from __future__ import annotations

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lore.text import instructions
from lore.text.instructions import standing

LASTING = """
Always use tabs for indentation.
Never commit directly to main.
From now on, answer in German.
Going forward, use pnpm instead of npm.
In the future, ask before deleting files.
In future please run the linter first.
Whenever you write SQL, use named parameters.
Every time you finish a task, run the tests.
Each time you add an endpoint, document it.
Remember that the staging server is read-only.
Remember to bump the version.
Remember: no emojis in commit messages.
Keep in mind that we deploy on Fridays.
Make sure you run mypy before committing.
Make sure that you never log secrets.
Be sure to sign the commits.
Don't ever touch the generated files.
Do not ever push without asking.
Stop adding comments to every line.
Avoid using global variables.
For all future reports, use metric units.
For any future question, answer briefly.
For all my projects, assume Python 3.12.
You should always write tests.
You must never edit the lock file.
I want you to always explain your steps.
I need you to never delete data.
I'd like you to always answer in English.
Please always use type hints.
Please remember my name is Ada.
When I ask for a summary, keep it under 100 words.
Whenever I ask about dates, use ISO format.
As a rule, no abbreviations in names.
Keep the answers short, no matter what.
I prefer tabs over spaces.
I'd rather have small functions.
I really prefer dark mode.
I still prefer the old layout.
I would favour a simpler design.
My preference is to use PostgreSQL.
I don't like long functions.
I do not want you to use mocks.
I like to keep functions short.
I love it when tests are quick.
I insist on using UTC everywhere.
I am used to working with vim.
I've decided to use SQLite.
I opted for the monthly plan.
I always use British spelling.
I never use semicolons.
I usually work at night.
Please, never use sed on JSON files.
Ok, from now on call me Sam.
Also, always add a changelog entry.
Could you please always add a test?
Can you answer in French from now on?
I’d prefer shorter answers.
Don’t ever use eval.
Always run `just lint` before committing.
Please use httpx instead of requests from here on.
From this point forward, amend no commits.
Could you please stop apologising all the time?
And then make sure you always run the linter.
Run the linter first, and don't ever skip it.
I'd rather you ask before you delete something.
Don't commit anything unless I ask you to.
Please do not push without asking me first.
Use pnpm going forward.
No more emojis in commit messages.
Please, no more mocks!
In this repo we use tabs.
In our codebase, we never log secrets.
In this project we don't squash.
We never commit to main directly.
""".strip().splitlines()

PASSING = """
I never said that.
She always comes late.
It never worked on Windows.
The tests never pass on CI.
What is the weather like?
How do I install this?
Do you always answer this quickly?
Why does it always fail?
Should I always use async?
Do I always have to restart the server?
Did I never use that flag?
Is it true that I usually work at night?
Have we always done it this way?
Do I prefer tabs?
Which one do I prefer?
What did I say my preference was?
Thanks, that helped a lot.
Let's look at the logs.
Fix the bug in parser.py.
Please run the tests.
Can you refactor this function?
The build stopped working yesterday.
I like this restaurant.
I love my dog.
I use Python at work.
I went to the store yesterday.
He prefers coffee.
We prefer not to say.
My favourite film is Alien.
The rule of thirds is useful.
Remember the time we went to Rome?
Do you remember that bug?
Never mind.
Never mind, I found it.
I will remember to call her.
The future looks bright.
Nothing lasts for ever.
The docs say that files are always closed.
Stop it.
Always.
Ok
> Always use tabs.
`always use tabs`
I asked for all of it.
I ran it from the root folder.
We only commit to the shadow branch if files change, right?
`EventGitCommit` never fires on a merge.
I don't ever eat breakfast.
We never use that one, do we?
No more errors now.
No more than five, please.
There are no more files left.
In this project we have five modules.
The build breaks from here to there.
What should I plan going forward?
I want to improve my skills going forward.
Don't worry, it works without asking.
""".strip().splitlines()


@pytest.mark.parametrize("sentence", LASTING)
def test_what_is_meant_to_last_is_kept_word_for_word(sentence):
    assert standing(sentence) == (sentence,)


@pytest.mark.parametrize("sentence", PASSING)
def test_what_is_said_in_passing_is_not_kept(sentence):
    assert standing(sentence) == ()


@pytest.mark.parametrize(
    ("message", "kept"),
    [
        (
            "Thanks! Always use tabs. Now fix the bug. Never push to main.",
            ("Always use tabs.", "Never push to main."),
        ),
        ("Two rules:\n- Always test.\n* Never guess.", ("Always test.", "Never guess.")),
        ("1. Always test.\n2) Never guess.", ("Always test.", "Never guess.")),
        ("I prefer plain SQL vs. an ORM.", ("I prefer plain SQL vs. an ORM.",)),
        ("```\nAlways use tabs.\n```", ()),
        ("```py\n# Always close it\n```\nNever push to main.", ("Never push to main.",)),
        ("Look at this:\n```\nalways do that", ()),
        ("> Always use tabs.\nNever push to main.", ("Never push to main.",)),
        ("He wrote:\n> never again\n> always wrong\nand left.", ()),
        ("I prefer `tabs` over spaces.", ("I prefer `tabs` over spaces.",)),
        ("Use v3.12 always. I prefer 3.12.", ("I prefer 3.12.",)),
        ("I never said that. I always use tabs.", ("I always use tabs.",)),
        ("Never mind. Always lint first!", ("Always lint first!",)),
        ("  Always   keep  the   spaces.  ", ("Always   keep  the   spaces.",)),
        ("Is it done?\n\nFrom now on, be brief.\n", ("From now on, be brief.",)),
    ],
)
def test_a_message_of_several_sentences_gives_those_that_last(message, kept):
    assert standing(message) == kept


def test_a_sentence_as_long_as_a_page_is_no_instruction():
    assert standing("Always " + "very " * 200 + "careful.") == ()


def test_only_the_beginning_of_a_long_message_is_read():
    assert standing("x " * 3_000 + ". Always use tabs.") == ()


@given(st.lists(st.sampled_from(["Always ", "I prefer ", "`", "```", "\n", "> ", "x. ", "?", "’"])))
def test_what_is_kept_stands_in_the_message(pieces):
    message = "".join(pieces)
    assert all(sentence in message for sentence in standing(message))


@given(st.text())
def test_any_text_can_be_read(text):
    assert all(sentence in text for sentence in standing(text))


@pytest.mark.parametrize("form", ["_INSTRUCTION", "_PREFERENCE", "_HABIT"])
@settings(max_examples=200, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_every_form_of_an_instruction_has_a_word_that_hints_at_it(form, data):
    ascii_only = st.characters(codec="ascii")
    later = getattr(instructions, form)
    pattern = re.compile(later.pattern, later.flags)
    said = data.draw(st.from_regex(pattern, alphabet=ascii_only))
    assert instructions._hints(said)
