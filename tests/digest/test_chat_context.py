"""What a chat is shown with an exchange, and what its references to known fragments do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lore.digest.drafts import CurationContext
from lore.digest.extraction import curate_session
from lore.records import CurationResult, Extract, Segment
from tests.digest.world import Reader, ScriptedSummarizer, World, fact

NPM = "We install the packages of this project with npm"
PNPM = "We install the packages of this project with pnpm"


class ScriptedChatSummarizer(ScriptedSummarizer):
    """A scripted summarizer that counts as a chat."""

    identity = "anthropic:claude-haiku-5-5"


def ask(world: World, read: Reader, session: str = "s") -> tuple[CurationResult, Segment]:
    """Curate a session with a chat, and return the last exchange that it was shown."""
    reader = ScriptedChatSummarizer(read)
    context = CurationContext(reader, world.embedder, world.sources.nearest)
    world.clock.advance(minutes=10)
    return curate_session(world.database, session, context), reader.asked[-1]


def nothing(_: Segment) -> list[Extract]:
    return []


def test_an_exchange_comes_with_project_topics_earlier_messages_and_nearest_fragments(world: World):
    world.learn(fact(NPM), text=NPM)
    world.say("Which tool installs the packages of this project?")
    _, shown = ask(world, nothing)
    assert shown.project == "app"
    assert [one.content for one in shown.known] == [NPM]
    assert shown.topics == ()  # what is known is not listed twice
    assert [one.text for one in shown.earlier] == [NPM]


def test_nothing_of_another_project_is_shown(world: World):
    world.learn(fact(NPM), text=NPM, session="other", project="/code/other")
    world.say("Which tool installs the packages of this project?")
    _, shown = ask(world, nothing)
    assert (shown.known, shown.topics, shown.earlier) == ((), (), ())


def test_a_session_without_a_project_is_shown_nothing_of_any(world: World):
    world.learn(fact(NPM), text=NPM, session="other", project="/code/other")
    world.say("Which tool installs the packages of this project?", project="")
    _, shown = ask(world, nothing)
    assert (shown.known, shown.topics) == ((), ())


def test_an_untrusted_fragment_is_not_shown(world: World):
    world.say(NPM, role="tool", origin="web")
    world.curate(lambda exchange: [fact(NPM, exchange.messages[0].id)])
    world.say("Which tool installs the packages of this project?")
    _, shown = ask(world, nothing)
    assert (shown.known, shown.topics) == ((), ())


def test_the_same_said_again_confirms_the_fragment_that_the_chat_names(world: World):
    world.learn(fact(NPM), text=NPM)
    (before,) = world.standing()
    world.say("npm it is, for all packages in here")
    again = fact("All packages in here come through npm", world.messages()[-1].id)
    made, _ = ask(world, lambda _: [replace(again, same_as=before.id)])
    (after,) = world.standing()
    assert (made.merged, made.stored) == (1, ())
    assert after.confidence > before.confidence


def test_another_value_is_not_merged_whatever_the_chat_says(world: World):
    world.learn(fact("The server listens on port 8080"), text="port 8080")
    (before,) = world.standing()
    world.say("The server listens on port 8443")
    other = fact("The server listens on port 8443", world.messages()[-1].id)
    ask(world, lambda _: [replace(other, same_as=before.id)])
    assert "The server listens on port 8443" in world.contents()


def test_a_fragment_that_the_chat_names_as_corrected_is_superseded(world: World):
    world.learn(fact(NPM), text=NPM)
    (before,) = world.standing()
    world.say("Packages come through another tool now")
    new = fact("Another tool brings the packages", world.messages()[-1].id)
    made, _ = ask(world, lambda _: [replace(new, corrects_id=before.id)])
    assert made.superseded == 1
    assert world.contents() == ["Another tool brings the packages"]


def test_a_correction_that_is_known_already_supersedes_what_the_chat_names(world: World):
    cargo = "Since the rewrite in Rust, cargo fetches everything that is needed"
    world.learn(fact(NPM), text=NPM)
    (before,) = world.standing()
    world.learn(fact(cargo), text=cargo)
    world.say("cargo, as I said")
    again = fact(cargo, world.messages()[-1].id)
    made, _ = ask(world, lambda _: [replace(again, corrects_id=before.id)])
    assert (made.merged, made.superseded) == (1, 1)
    assert world.contents() == [cargo]


def test_a_correction_far_from_what_the_chat_names_supersedes_it(world: World):
    others = [f"Release {number} went out on day {number}" for number in range(60)]
    world.learn(fact(NPM), text=NPM)
    (before,) = world.standing()
    for text in others:
        world.learn(fact(text), text=text)
    world.say("Release 60 went out on day 60")
    new = fact("Release 60 went out on day 60", world.messages()[-1].id)
    made, _ = ask(world, lambda _: [replace(new, corrects_id=before.id)])
    assert made.superseded == 1
    assert NPM not in world.contents()


def test_a_less_trusted_source_corrects_nothing(world: World):
    world.learn(fact(NPM), text=NPM)
    (before,) = world.standing()
    world.say(PNPM, role="tool", origin="web")
    new = fact(PNPM, world.messages()[-1].id)
    made, _ = ask(world, lambda _: [replace(new, corrects_id=before.id)])
    assert (made.superseded, made.contradicted) == (0, 1)
    assert NPM in world.contents()


ORDERS = "We keep all orders in Postgres."
REVIEW = (
    "Have a look. Invoices stay in Vault, not in git. The reviewer says:\n\n"
    "The service must keep all orders in Redis instead of Postgres, and CI has to run on Jenkins."
)


def origins_by_content(world: World) -> dict[str, str]:
    return {one.content: one.origin for one in world.standing()}


@pytest.mark.parametrize("is_cited", [True, False])
@pytest.mark.parametrize(
    "text",
    [
        "Orders are kept in Redis rather than Postgres.",
        "CI runs on Jenkins; orders live in Redis, not in Postgres.",
        "We do not keep all orders in Postgres.",
    ],
)
def test_a_paraphrase_of_pasted_text_replaces_nothing_that_a_person_said(
    world: World, text: str, *, is_cited: bool
):
    world.learn(fact(ORDERS), text=ORDERS)
    pasting = world.say(REVIEW)
    typing = world.say(
        "Please keep all orders of the service in Postgres, and answer the reviewer."
    )
    source = pasting if is_cited else typing
    ask(world, lambda _: [fact(text, source, corrects=ORDERS)])
    assert origins_by_content(world) == {ORDERS: "user", text: "assistant"}


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        ("Invoices stay in Vault, not in git.", "user"),
        ("The invoices are to stay in Vault, and not in git.", "user"),
        ("Invoices stay in git, not in Vault.", "assistant"),
        ("Invoices stay in Vault and in git.", "assistant"),
    ],
)
def test_what_a_person_typed_beside_pasted_text_is_the_persons(
    world: World, text: str, origin: str
):
    pasting = world.say(REVIEW)
    ask(world, lambda _: [fact(text, pasting)])
    assert origins_by_content(world) == {text: origin}


def test_a_rewording_where_nobody_pasted_anything_is_the_persons(world: World):
    typing = world.say("We keep our orders in Postgres since 2024, never in Redis.")
    text = "The user stores orders in Postgres and does not want Redis."
    ask(world, lambda _: [fact(text, typing)])
    assert origins_by_content(world) == {text: "user"}
