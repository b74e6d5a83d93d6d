"""Stored text that tries to run in the browser of whoever reads it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from itertools import islice

from lore.memory import Memory
from lore.memory.search import Reader
from lore.records import NewMessage, Part, RequestCost, TokenUse

VECTORS = (
    "<script>{js}</script>",
    "<script src=//evil.invalid/{n}.js></script>",
    "<img src=x{n} onerror={js}>",
    "<img/src=//evil.invalid/{n}.png>",
    "<svg onload={js}>",
    "<svg><animate onbegin={js} attributeName=x dur=1s>",
    '<iframe src="javascript:{js}"></iframe>',
    '<iframe srcdoc="<script>{js}</script>"></iframe>',
    '<a href="javascript:{js}" autofocus onfocus={js}>t{n}</a>',
    "[t{n}](javascript:{js})",
    "[t{n}](JaVaScRiPt:{js})",
    "[t{n}](javascript:window.fired={n})",
    "[t{n}](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==)",
    "![t{n}](http://evil.invalid/{n}.png)",
    "<details open ontoggle={js}>t{n}</details>",
    "<input autofocus onfocus={js}>",
    "<video><source onerror={js}></video>",
    "<audio src=//evil.invalid/{n}.ogg onerror={js}>",
    "<style>@import '//evil.invalid/{n}.css';</style>",
    "<link rel=stylesheet href=//evil.invalid/{n}.css>",
    '<meta http-equiv=refresh content="0;url=//evil.invalid/{n}">',
    "<base href=//evil.invalid/{n}/>",
    "<object data=javascript:{js}></object>",
    "<embed src=//evil.invalid/{n}>",
    "<form action=javascript:{js}><button autofocus>t{n}</button></form>",
    "<math><mi xlink:href=javascript:{js}>t{n}</mi></math>",
    "<marquee onstart={js}>t{n}</marquee>",
    '<p style="background:url(//evil.invalid/{n})">t{n}</p>',
    "{{{{constructor.constructor('{js}')()}}}}",
    "${{{js}}}",
    "&lt;script&gt;{js}&lt;/script&gt;",
)
CONTEXTS = (
    "{}", '"{}', "'>{}", '">{}', "</textarea></title></script>{}", "-->]]>{}", "`{}`",
    "```html\n{}\n```", "| {} | b |", "> {}", "- **{}**", "# {}", "[{}](http://a.invalid/)",
)  # fmt: skip
"""What stands around a vector: quotes and tags to break out of, and Markdown."""


def _hostile_texts() -> Iterator[str]:
    number = 0
    for context in CONTEXTS:
        for vector in VECTORS:
            js = f"(window.fired??=[]).push({number})"
            yield f"hostile{number}e " + context.format(vector.format(js=js, n=number))
            number += 1


TEXTS = tuple(_hostile_texts())
LINES = tuple(text.replace("\n", " ") for text in TEXTS)
"""The same for fields of one line."""


def _batches(texts: Sequence[str], size: int) -> Iterator[list[str]]:
    rest = iter(texts)
    while batch := list(islice(rest, size)):
        yield batch


def store_hostile_texts(memory: Memory) -> None:
    """Put every text into every field that pages show; slow fields get many at a time."""
    _capture_sessions(memory)
    messages = _capture_long_session(memory)
    ids = [
        memory.store(
            text, summary=line, kind="decision", origin="peer", session="hostile",
            source_messages=[message], project=f"/hostile/{n % 40}",
            payload={"rationale": line, "alternatives": [line], line: text},
        )
        for n, (text, line, message) in enumerate(zip(TEXTS, LINES, messages, strict=True))
    ]  # fmt: skip
    for line, id_ in zip(LINES[1:], ids[1:], strict=True):
        memory.knowledge.link(ids[0], id_, "elaborates", note=line)
    memory.knowledge.link(ids[2], ids[1], "contradicts", note=LINES[2])
    for batch in _batches(LINES, 15):
        memory.knowledge.update(ids[0], "\n\n".join(batch), reason=" ".join(batch)[:1_900])
    memory.knowledge.update(ids[0], "\n\n".join(TEXTS), summary="\n".join(LINES)[:1_900])
    memory.knowledge.supersede(ids[3], ids[4])
    _add_work(memory)


def _capture_sessions(memory: Memory) -> None:
    """Capture one session for each text: title, agent, project, branch, speaker, model."""
    now = memory.database.now()
    for number, line in enumerate(LINES):
        said = NewMessage(
            "user", (Part("text", line),), now, "1", speaker=line[:100], model=line[:100]
        )
        memory.capture(
            f"h{number} {line[:150]}", [said], agent=line[:60], branch=line[:200],
            title=line, project=f"/hostile/{line.replace('/', '|')[:100]}",
        )  # fmt: skip


def _capture_long_session(memory: Memory) -> list[str]:
    """Capture one session with all texts as messages, tool calls, results and reasoning."""
    now = memory.database.now()
    new = [NewMessage("user", (Part("text", TEXTS[0]),), now - timedelta(hours=1), "u")]
    for n, (text, line) in enumerate(zip(TEXTS, LINES, strict=True)):
        parts = (
            Part("text", text),
            Part("reasoning", text),
            Part("tool_call", text, line[:120], f"c{n}"),
            Part("image", "", line[:120]),
            Part("aside", text),
        )
        new.append(
            NewMessage(
                "assistant",
                parts,
                now,
                f"a{n}",
                speaker=line[:100],
                model=line[:100],
                usage={"input_tokens": 9, "output_tokens": 1},
            )
        )
    result = Part("tool_result", "\n".join(TEXTS), "bash", "c0", failed=True)
    new.append(NewMessage("tool", (result,), now, "t"))
    ids = memory.capture("hostile", new, agent="codex", project="/hostile/long", title="Hostile")
    for line in LINES[::20]:
        memory.recall(line, reader=Reader("hostile"))
    return ids[1 : len(TEXTS) + 1]


def _add_work(memory: Memory) -> None:
    """Start tasks, write skills and handoffs, and spend: all with hostile names."""
    project = "/hostile/long"
    for n, batch in enumerate(_batches(LINES, 30)):
        text = " ".join(batch)
        task = memory.tasks.start(
            text, project=project, agent=batch[0][:100], session="hostile", name=f"task {n}"
        )
        errors = [{"type": batch[1][:200], "message": f"TypeError: {text}", "resolution": text}]
        memory.tasks.end(
            task.task_id, outcome="failure", reason=text, project=project,
            report={"errors": errors, "actions": [], "files_changed": batch},
        )  # fmt: skip
        memory.tasks.start(text, project=project, agent=batch[2][:100], session="hostile")
        steps = "\n".join(f"{k}. {line}" for k, line in enumerate(batch, 1))
        memory.tasks.add_skill(
            f"# {batch[0][:150]}\n\n{text}\n\n## Steps\n{steps}\n", project=project
        )
        memory.handoffs.write(
            from_agent=batch[3][:60], to_agent=batch[4][:60], project=project, session="hostile",
            what_was_done="\n".join(batch), next_steps=batch[:10], artifacts=batch[10:20],
            needs_testing=batch[20:25], known_issues=batch[25:], decisions=batch[:5],
        )  # fmt: skip
        memory.handoffs.checkpoint(
            agent=batch[5][:60], project=project, current_task=text[:900], reads_folder=False
        )
    _spend(memory, LINES)


def _spend(memory: Memory, names: Iterable[str]) -> None:
    for name in names:
        cost = RequestCost(name[:150], TokenUse(10, output_tokens=1), session="hostile")
        memory.budget.settle_request(memory.budget.reserve_request(cost), TokenUse(10))
