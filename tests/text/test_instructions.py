"""Standing instructions and their withdrawals."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore.text import instructions, rule_model


def find_standing(text: str) -> tuple[str, ...]:
    """Return the lasting rules in a person's message, word for word, certain or not."""
    return tuple(
        sentence
        for sentence, masked in instructions.masked_sentences(text)
        if instructions.judge_rule(masked, len(text)) != "passing"
    )


LASTING = """
Always use tabs for indentation.
Never commit directly to main.
From now on, answer in German.
Going forward, use pnpm instead of npm.
In the future, ask before deleting files.
In future please run the linter first.
Whenever you write SQL, use named parameters.
Do not ever push without asking.
You should always write tests.
You must never edit the lock file.
I want you to always explain your steps.
I'd like you to always answer in English.
Please always use type hints.
Please, never use sed on JSON files.
Also, always add a changelog entry.
Don’t ever use eval.
Always run `just lint` before committing.
Always provide prices with tax when I ask about costs.
""".strip().splitlines()

LIKELY = """
Stop adding comments to every line.
For all future reports, use metric units.
Please do not push without asking me first.
I don't like long functions.
""".strip().splitlines()

WISHES = """
I prefer tabs over spaces.
I'd rather have small functions.
My preference is to use PostgreSQL.
I've decided to use SQLite.
Make sure you run mypy before committing.
In this repo we use tabs.
No more emojis in commit messages.
Could you please stop apologising all the time?
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


def judge(sentence: str, message_chars: int = 0) -> str:
    return instructions.judge_rule(instructions.mask_quotes(sentence), message_chars)


@pytest.mark.parametrize("sentence", LASTING)
def test_a_rule_said_as_lasting_stands_at_once(sentence):
    assert find_standing(sentence) == (sentence,)
    assert judge(sentence) == "stands"


@pytest.mark.parametrize("sentence", LIKELY)
def test_a_likely_rule_has_to_be_confirmed(sentence):
    assert judge(sentence) == "suggested"


@pytest.mark.parametrize(
    ("sentence", "state"),
    [
        ("Claude should never touch the lockfile.", "suggested"),
        ("The agent must always ask before pushing.", "suggested"),
        ("Cursor AI should NEVER access any environment files!!", "suggested"),
        ("You should never touch the lockfile.", "stands"),
        ("Users should always log in.", "passing"),
    ],
)
def test_a_rule_may_name_the_agent_and_is_then_asked_about(sentence: str, state: str):
    assert judge(sentence) == state


@pytest.mark.parametrize("sentence", LASTING[:3])
def test_no_rule_of_a_pasted_page_stands_at_once(sentence):
    assert judge(sentence, rule_model.LONG + 1) != "stands"


@pytest.mark.parametrize("sentence", WISHES)
def test_a_wish_is_found_for_what_is_known_of_a_person(sentence):
    assert instructions.find_wishes(sentence) == (sentence,)


@pytest.mark.parametrize(
    "sentence",
    [
        "I'd prefer that",
        "and remember to use pagination",
        "I don't like turn, any other suggestions?",
        "I favor this solution.",
        "at the top of the report, find a way to make the git url always visible",
        "don't create a pr, just a commit",
        "Why does the hook never fire?",
    ],
)
def test_what_is_about_the_task_at_hand_is_no_rule(sentence):
    assert judge(sentence) == "passing"


@pytest.mark.parametrize("sentence", PASSING)
def test_passing_remarks_are_no_instructions(sentence):
    assert find_standing(sentence) == ()


@pytest.mark.parametrize(
    ("message", "kept"),
    [
        (
            "Thanks! Always use tabs. Now fix the bug. Never push to main.",
            ("Always use tabs.", "Never push to main."),
        ),
        ("Two rules:\n- Always test.\n* Never guess.", ("Always test.", "Never guess.")),
        ("1. Always test.\n2) Never guess.", ("Always test.", "Never guess.")),
        ("```\nAlways use tabs.\n```", ()),
        ("```py\n# Always close it\n```\nNever push to main.", ("Never push to main.",)),
        ("Look at this:\n```\nalways do that", ()),
        ("> Always use tabs.\nNever push to main.", ("Never push to main.",)),
        ("He wrote:\n> never again\n> always wrong\nand left.", ()),
        ("I never said that. Always use `tabs`.", ("Always use `tabs`.",)),
        ("Never mind. Always lint first!", ("Always lint first!",)),
        ("  Always   keep  the   spaces.  ", ("Always   keep  the   spaces.",)),
        ("Is it done?\n\nFrom now on, be brief.\n", ("From now on, be brief.",)),
    ],
)
def test_a_message_of_several_sentences_gives_those_that_last(message, kept):
    assert find_standing(message) == kept


def test_a_sentence_as_long_as_a_page_is_no_instruction():
    assert find_standing("Always " + "very " * 200 + "careful.") == ()


def test_only_the_beginning_of_a_long_message_is_read():
    assert find_standing("x " * 3_000 + ". Always use tabs.") == ()


@given(st.lists(st.sampled_from(["Always ", "I prefer ", "`", "```", "\n", "> ", "x. ", "?", "’"])))
def test_every_instruction_is_a_substring_of_the_message(pieces):
    message = "".join(pieces)
    assert all(sentence in message for sentence in find_standing(message))


@given(st.text())
def test_any_text_can_be_read(text):
    assert all(sentence in text for sentence in find_standing(text))


RULES = (
    "Always run the linter before commits.",
    "Also, never push to main without asking.",
    "From now on use tabs for indentation.",
    "Please always write tests with pytest.",
    "Never run the linter on generated files.",
    "Use pnpm going forward.",
    "No more emojis in commit messages.",
    "Always answer in English.",
    "Always use tabs in Makefiles.",
    "Make sure you run mypy before committing.",
    "always run `make check` before every commit.",
)


def taken_back(sentence: str) -> list[str]:
    found = instructions.find_withdrawal(sentence)
    return [RULES[place] for place in instructions.match_rules(found, RULES)] if found else []


@pytest.mark.parametrize(
    ("sentence", "rule"),
    [
        ("You no longer need to run the linter before commits.", 0),
        ("btw, you no longer have to run the linter before commits, CI does it", 0),
        ("Stop running the linter before commits.", 0),
        ("You don't need to ask before pushing anymore", 1),
        ("From now on use four spaces instead of tabs for indentation.", 2),
        ("And forget the rule about pytest.", 3),
        ("Don't bother with pytest any more.", 3),
        ("From now on use unittest instead of pytest.", 3),
        ("Please forget the rule that tests use pytest", 3),
        ("Going forward, use npm instead of pnpm.", 5),
        ("I no longer use pnpm.", 5),
        ("Drop the emoji rule.", 6),
        ("Forget what I said about emojis.", 6),
        ("The rule about emojis no longer applies.", 6),
        ("From now on answer in German instead of English.", 7),
        ("No need to run mypy anymore.", 9),
        ("Don’t bother running mypy any more.", 9),
        ("dont bother with mypy anymore", 9),
        ("Forget make check, from now on it's just check, on the laptop.", 10),
        ("Forget make check.", 10),
        ("Scrap make check: from now on we run just check before every commit.", 10),
        ("Drop pnpm, going forward we use npm.", 5),
        ("No more tabs for indentation.", 2),
        ("so forget `make check`, from now on it's `just check`, it also runs the web tests.", 10),
    ],
)
def test_a_withdrawal_matches_the_rule_that_it_means(sentence, rule):
    assert taken_back(sentence) == [RULES[rule]]


@pytest.mark.parametrize(
    "sentence",
    [
        "You no longer need to run the tests before commits.",
        "You no longer need to run the linter before commits on this branch.",
        "You don't need to run the linter any more today.",
        "Once CI is green you no longer need to run the linter before commits.",
        "Do I no longer need to run the linter before commits?",
        "You no longer need to run the linter before commits?",
        "He said you no longer need to run the linter before commits.",
        "The pipeline no longer needs to run the linter before commits.",
        "You no longer need to run the linter before commits and releases.",
        "Forget the rule about commits.",
        "Forget it.",
        "forget `make check`, it works.",
        "Forget the linter error.",
        "Forget the tests, from now on we deploy from main.",
        "Forget make check for now, from now on be quick.",
        "Forget check make, from now on it's just check.",
        "Drop generated files, from now on we keep them out.",
        "No more errors.",
        "No more emojis in commit messages.",
        "She said forget make check, from now on it's just check.",
        "Should we forget make check, from now on?",
        "From now on use spaces instead of tabs in Python files.",
        "From now on name branches in German instead of English.",
        "Use unittest instead of pytest here.",
        "Don't run the linter.",
        "Stop it.",
        "Always run the linter before commits.",
    ],
)
def test_a_withdrawal_matches_no_other_rule(sentence):
    assert taken_back(sentence) == []


def test_a_name_alone_withdraws_only_beside_a_new_rule():
    assert instructions.find_paired_withdrawal(
        "Forget make check.", "", "From now on we run just check."
    )
    assert instructions.find_paired_withdrawal("Forget make check.", "Always run just check.", "")
    assert (
        instructions.find_paired_withdrawal("Forget make check.", "Commit it.", "Thanks.") is None
    )
    assert instructions.find_paired_withdrawal("You no longer need to run mypy.")


def test_duplicates_of_a_rule_are_withdrawn_together():
    found = instructions.find_withdrawal("You no longer need to run the linter before commits.")
    assert found
    said = ("Always run the linter before commits.", "Please run the linter before all commits")
    assert instructions.match_rules(found, said) == [0, 1]


def test_a_rule_that_rejects_the_replaced_thing_is_not_withdrawn():
    found = instructions.find_withdrawal("From now on use four spaces instead of tabs.")
    assert found
    assert instructions.match_rules(found, ["I prefer spaces over tabs.", "Never use tabs."]) == []
    assert instructions.match_rules(found, ["I prefer tabs over spaces."]) == [0]


def test_a_withdrawal_with_a_request_is_a_rule_too():
    assert instructions.is_only_withdrawal("You no longer need to run the linter.")
    assert instructions.is_only_withdrawal("From now on you no longer need to run the linter.")
    assert not instructions.is_only_withdrawal("Stop running the linter before commits.")
    assert not instructions.is_only_withdrawal("From now on use spaces instead of tabs.")
    assert not instructions.is_only_withdrawal("Always run the linter.")


def test_sentences_come_with_what_is_quoted_masked():
    assert list(instructions.masked_sentences("Never use `eval`. Ok. Always test it.")) == [
        ("Never use `eval`.", "Never use \x01\x01\x01\x01\x01\x01."),
        ("Always test it.", "Always test it."),
    ]


@pytest.mark.parametrize(
    "line",
    [
        "+ {}",
        '{{"note": "{}"}}',
        "<p>{}</p>",
        "2026-05-04 10:00:00 INFO {}",
        "| {} |",
        "Subject: {}",
    ],
)
def test_a_line_that_looks_pasted_never_stands_at_once(line: str) -> None:
    rule = "From now on always run `make check` before every push."
    assert instructions.judge_sentence(rule) == "stands"
    assert instructions.judge_sentence(line.format(rule)) != "stands"
