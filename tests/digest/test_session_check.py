"""At the end of a session a chat checks what it extracted: what did not last is archived."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lore.digest.drafts import CurationContext
from lore.digest.extraction import curate_session
from lore.errors import BadReply
from lore.records import CurationResult, Extract, FactVerdict, Fragment, MessageText, Segment
from lore.store import consolidation, fragments, items
from lore.store.consolidation import StepRecorder, ignore_step
from tests.digest.world import ScriptedSummarizer, World, fact

CAUSE = "The upload of harbor fails because the proxy cuts requests after 30 seconds"
OTHER = "The upload of harbor fails because the disk of the staging server is full"
LINE = "Line 12 of upload.py was renamed"


class CheckingSummarizer(ScriptedSummarizer):
    """A scripted chat that extracts facts, and gives verdicts by their texts."""

    identity = "some chat"

    def __init__(self, extracts: Sequence[Extract], verdicts: Mapping[str, FactVerdict]) -> None:
        super().__init__(lambda exchange: [one for one in extracts if _is_of(exchange, one)])
        self.verdicts = verdicts
        self.checked: list[list[str]] = []
        self.said: list[str] = []

    def check(self, facts: Sequence[Fragment], said: Sequence[MessageText]) -> list[FactVerdict]:
        """Return the verdicts that were given for the texts of facts."""
        self.checked.append([one.content for one in facts])
        self.said = [one.text for one in said]
        return [self.verdicts.get(one.content, "keep") for one in facts]


def _is_of(exchange: Segment, extract: Extract) -> bool:
    return extract.sources[0] in {one.id for one in exchange.messages}


def curate(
    world: World, chat: CheckingSummarizer, recorder: StepRecorder = ignore_step
) -> CurationResult:
    world.clock.advance(minutes=10)
    context = CurationContext(chat, world.embedder, world.sources.nearest)
    return curate_session(world.database, "s", context, recorder=recorder)


def test_what_the_session_overturned_or_nobody_needs_is_archived(world: World):
    world.say("Why does the upload fail?")
    first = world.say("The proxy seems to cut requests.", role="assistant")
    world.say("no, look at the disk")
    world.say("Let me see.", role="assistant")
    last = world.say("You are right, it is full. I renamed a line, too.", role="assistant")
    chat = CheckingSummarizer(
        [fact(CAUSE, first), fact(OTHER, last), fact(LINE, last)],
        {CAUSE: "overturned", LINE: "trivial"},
    )
    made = curate(world, chat)
    assert (len(made.stored), made.archived) == (3, 2)
    assert world.contents() == [OTHER]
    assert chat.checked == [[CAUSE, OTHER, LINE]]
    assert "Let me see." not in chat.said  # only the last words of a turn
    assert len(chat.said) == 4


def test_a_person_may_read_what_was_archived_and_undo_brings_it_back(world: World):
    said = world.say("The proxy cuts requests. A line was renamed.", role="assistant")
    chat = CheckingSummarizer([fact(CAUSE, said), fact(LINE, said)], {LINE: "trivial"})
    cycle = world.database.write(
        lambda db: consolidation.begin_cycle(db, ["digest"], now=world.clock())
    )
    made = curate(world, chat, consolidation.step_recorder(cycle))
    assert world.contents() == [CAUSE]
    with world.database.read() as db:
        assert fragments.get(db, items.resolve(db, made.stored[1]).n).content == LINE
        steps = consolidation.steps_of_cycle(db, cycle)
    assert "archived" in {step.verb for step in steps}


def test_without_a_usable_answer_everything_stays(world: World):
    class UnusableSummarizer(CheckingSummarizer):
        def check(
            self, facts: Sequence[Fragment], said: Sequence[MessageText]
        ) -> list[FactVerdict]:
            msg = "The answer is no JSON."
            raise BadReply(msg)

    said = world.say("The proxy cuts requests. A line was renamed.", role="assistant")
    chat = UnusableSummarizer([fact(CAUSE, said), fact(LINE, said)], {})
    assert curate(world, chat).archived == 0
    assert world.contents() == [CAUSE, LINE]
    assert curate(world, chat).exchanges == 0  # the session is not read again


def test_a_persons_own_words_are_not_asked_about(world: World):
    said = world.say(f"{CAUSE}. {OTHER}. {LINE}")
    chat = CheckingSummarizer([fact(one, said) for one in (CAUSE, OTHER, LINE)], {})
    curate(world, chat)
    assert chat.checked == []
    assert len(world.contents()) == 3


def test_a_topic_stays_as_long_as_something_is_below_it(world: World):
    said = world.say("Much about the upload.", role="assistant")
    tree = [fact(CAUSE, said, children=[fact(OTHER, said), fact(LINE, said)])]
    curate(world, CheckingSummarizer(tree, {CAUSE: "trivial", LINE: "trivial"}))
    assert world.contents() == [CAUSE, OTHER]
    again = world.say("And more.", role="assistant")
    tree = [fact("The export of harbor runs at night", again, children=[fact("It logs", again)])]
    verdicts: dict[str, FactVerdict] = dict.fromkeys(("It logs", tree[0].content), "trivial")
    assert curate(world, CheckingSummarizer(tree, verdicts)).archived == 2


def test_what_is_said_again_in_another_session_is_known_again(world: World):
    said = world.say("The proxy cuts requests. A line was renamed.", role="assistant")
    chat = CheckingSummarizer([fact(CAUSE, said), fact(OTHER, said)], {CAUSE: "trivial"})
    curate(world, chat)
    assert world.contents() == [OTHER]
    world.learn(fact(CAUSE), text=CAUSE, session="t")
    assert world.contents() == [OTHER, CAUSE]
