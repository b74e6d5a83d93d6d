"""A summarizer that asks a chat model: nine prompts, validated answers, and a cost ledger."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from pydantic import BaseModel

from lore import telemetry
from lore.errors import BadReply, ProviderError, ProviderUnavailable
from lore.llm import prompt_templates, structured_output
from lore.llm.chat import Chat, ChatMessage, ChatRequest, ChatResponse, Ledger, Usage
from lore.llm.quote_check import Grounding
from lore.llm.retry import RetryPolicy, send_with_retry
from lore.llm.structured_output import CheckedFacts, Facts, Insight, Reply, Taught, Verdicts
from lore.records import (
    CitedSentence,
    Extract,
    FactVerdict,
    Fragment,
    Hit,
    JudgedPair,
    Log,
    LogLine,
    MessageText,
    RequestCost,
    Segment,
    TokenUse,
    Verdict,
)
from lore.text import tokens, words
from lore.text.sentences import split_sentences

V = TypeVar("V", bound=BaseModel)

PAIRS_PER_REQUEST = 10
"""With more pairs in one request, models begin to mix them up."""

WORDS_PER_TOKEN = 0.7
"""English prose has some 0.75 words a token, paths and numbers fewer."""

THINKING_TOKENS = 4096
"""Room beyond the answer itself: reasoning models spend it from the same limit."""

EXTRACT_TOKENS = 4096
SHORT_TOKENS = 1024
CHECK_TOKENS = 3072
OVERVIEW_TOKENS = 400
INSIGHT_TOKENS = 200
ANSWER_TOKENS = 400
TAUGHT_TOKENS = 1500

ASK_WAIT_S = 10.0
"""A person waits for the answer to a question: after this backoff the passages are quoted."""

_SCHEMA_TOKENS = 600
"""A schema counts as prompt; the largest has some 500 tokens."""

_NUMBERED = re.compile(r"\s*(?:[-*•]\s*)?\[([\d\s,;–-]{1,200})\]\s*(.*)")
_CITED = re.compile(r"(?:^|\s+|(?<=[.!?]))\[[\d\s,;–-]{1,200}\]")
_MAX_RANGE = 200
_MAX_LINE_TOKENS = 600
_TIMELINE = "timeline:"
_SECTIONS = frozenset(("current state:", "decisions:", "changes:", _TIMELINE))
_FENCE = re.compile(r"<<<(?:end of )?record\b[^\n>]*>>>")


class ChatSummarizer:
    """Reads text for the digest by asking a chat model, and trusts its answers as little as
    possible.
    """

    def __init__(
        self,
        chat: Chat,
        ledger: Ledger,
        *,
        retry_policy: RetryPolicy | None = None,
        boundary: prompt_templates.Boundary = prompt_templates.new_boundary,
    ) -> None:
        self._chat = chat
        self._ledger = ledger
        self._retry_policy = retry_policy or RetryPolicy()
        self._boundary = boundary

    @property
    def identity(self) -> str:
        """Return the provider and model of the chat."""
        return self._chat.identity

    def close(self) -> None:
        """Abort running requests."""
        self._chat.close()

    def observe(self, segment: Segment, *, limit_tokens: int) -> Log:
        """Write a dated log of a segment that keeps everything operational."""
        if not segment.messages:
            return Log(())
        record = prompt_templates.render_messages(segment)
        text = self._request_text(prompt_templates.OBSERVE, record, limit_tokens)
        return Log(tuple(_fit_lines(list(_parse_log(text, segment)), limit_tokens)))

    def condense(self, logs: Sequence[Log], former: Log, *, limit_tokens: int) -> Log:
        """Condense several logs into one: current state, decisions, changes, timeline."""
        record = prompt_templates.render_logs(logs, former)
        text = self._request_text(prompt_templates.CONDENSE, record, limit_tokens)
        shown = {number for log in (former, *logs) for line in log.lines for number in line.sources}
        lines = [_parse_condensed_line(line, shown) for line in text.splitlines() if line.strip()]
        return Log(tuple(_fit_lines(lines, limit_tokens)))

    def extract(self, exchange: Segment) -> list[Extract]:
        """Return the knowledge in an exchange that is worth keeping, broad before specific."""
        if not exchange.messages:
            return []
        record = prompt_templates.render_exchange(exchange)
        facts = self._request_value(prompt_templates.EXTRACT, record, Facts, EXTRACT_TOKENS)
        beside = (*exchange.earlier, *prompt_templates.select_after(exchange))
        return structured_output.facts_to_extracts(
            facts,
            Grounding(exchange.messages, beside, exchange.branch),
            clean_output,
            prompt_templates.label_whole(exchange),
        )

    def overview(self, root: Fragment, children: Sequence[Fragment]) -> str:
        """Return a new text for a root whose children changed."""
        record = prompt_templates.render_fragments([root, *children])
        text = self._request_text(prompt_templates.OVERVIEW, record, OVERVIEW_TOKENS)
        return tokens.clip(text.strip(), OVERVIEW_TOKENS)

    def reflect(self, cluster: Sequence[Fragment]) -> str:
        """Return the insight that several linked roots yield together; empty if there is none."""
        record = prompt_templates.render_fragments(cluster, first=1)
        answer = self._request_value(prompt_templates.REFLECT, record, Insight, SHORT_TOKENS)
        cited = {number for number in answer.from_items if 1 <= number <= len(cluster)}
        if len(cited) < min(2, len(cluster)):
            return ""
        return tokens.clip(clean_output(answer.insight).strip(), INSIGHT_TOKENS)

    def check(self, facts: Sequence[Fragment], spoken: Sequence[MessageText]) -> list[FactVerdict]:
        """Return for each fact of a session whether it is worth keeping at the end of it.

        A fact with no verdict, or with several, is kept.
        """
        record = prompt_templates.render_facts(facts, spoken)
        answer = self._request_value(
            prompt_templates.CHECK, record, CheckedFacts, CHECK_TOKENS, facts=len(facts)
        )
        by_fact: dict[int, set[FactVerdict]] = {}
        for checked in answer.verdicts:
            by_fact.setdefault(checked.fact, set()).add(checked.verdict)
        verdicts: list[FactVerdict] = []
        for number in range(1, len(facts) + 1):
            (verdict, *others) = by_fact.get(number) or {"keep"}
            verdicts.append("keep" if others else verdict)
        return verdicts

    def judge(self, pairs: Sequence[JudgedPair]) -> list[Verdict | None]:
        """Return what the newer one of each pair does to the older one; None if unknown."""
        verdicts: list[Verdict | None] = []
        for start in range(0, len(pairs), PAIRS_PER_REQUEST):
            verdicts += self._judge_batch(pairs[start : start + PAIRS_PER_REQUEST])
        return verdicts

    def generalize(self, tasks: Sequence[str]) -> Taught:
        """Return what several similar tasks teach; each is a text that describes one."""
        numbered = (
            f"[{place}] {prompt_templates.indent(text).lstrip()}"
            for place, text in enumerate(tasks, 1)
        )
        return self._request_value(
            prompt_templates.GENERALIZE, "\n\n".join(numbered), Taught, TAUGHT_TOKENS
        )

    def answer(self, question: str, hits: Sequence[Hit]) -> list[CitedSentence]:
        """Answer a question from hits; return no sentences if they do not answer it.

        Sentences that cite no hit are dropped; `BadReply` if no other is left.
        """
        record = prompt_templates.render_hits(hits)
        policy = replace(
            self._retry_policy, max_wait_s=min(ASK_WAIT_S, self._retry_policy.max_wait_s)
        )
        asked = prompt_templates.indent(question)
        reply = self._request_value(
            prompt_templates.ASK, record, Reply, ANSWER_TOKENS, policy=policy, question=asked
        )
        sentences: list[CitedSentence] = []
        for one in reply.sentences:
            places = sorted({number - 1 for number in one.from_items if 1 <= number <= len(hits)})
            text = " ".join(_CITED.sub("", clean_output(one.text)).split())
            if places:
                sentences += [CitedSentence(part, tuple(places)) for part in split_sentences(text)]
        if reply.sentences and not sentences:
            msg = f"{self.identity} answered without citing a passage of memory."
            raise BadReply(msg)
        return list(_take_sentences(sentences))

    def _judge_batch(self, pairs: Sequence[JudgedPair]) -> list[Verdict | None]:
        """Judge some pairs; a pair with no verdict, or with several, stays unjudged."""
        record = prompt_templates.render_pairs(pairs)
        answer = self._request_value(
            prompt_templates.JUDGE, record, Verdicts, SHORT_TOKENS, pairs=len(pairs)
        )
        by_pair: dict[int, set[Verdict]] = {}
        for judged in answer.verdicts:
            by_pair.setdefault(judged.pair, set()).add(judged.verdict)
        verdicts: list[Verdict | None] = []
        for number, (older, newer) in enumerate(pairs, 1):
            verdict: Verdict | None = None
            if len(by_pair.get(number, ())) == 1:
                (verdict,) = by_pair[number]
            if verdict in ("changes", "changes_part") and newer.trust < older.trust:
                verdict = "contradicts"
            verdicts.append(verdict)
        return verdicts

    def _request_text(self, prompt: prompt_templates.Prompt, record: str, limit_tokens: int) -> str:
        most_words = int(limit_tokens * WORDS_PER_TOKEN)
        request = self._build_request(prompt, record, limit_tokens, most_words=most_words)
        return clean_output(self._send(prompt, request).text)

    def _request_value(
        self,
        prompt: prompt_templates.Prompt,
        record: str,
        schema: type[V],
        limit_tokens: int,
        *,
        policy: RetryPolicy | None = None,
        **values: object,
    ) -> V:
        request = replace(
            self._build_request(prompt, record, limit_tokens, **values), schema=schema
        )
        value = self._send(prompt, request, policy).value
        assert isinstance(value, schema)
        return value

    def _build_request(
        self, prompt: prompt_templates.Prompt, record: str, limit_tokens: int, **values: object
    ) -> ChatRequest:
        rendered = prompt_templates.render(prompt, record, boundary=self._boundary(), **values)
        messages = (ChatMessage("user", rendered.user),)
        return ChatRequest(rendered.system, messages, limit_tokens + THINKING_TOKENS)

    def _send(
        self,
        prompt: prompt_templates.Prompt,
        request: ChatRequest,
        policy: RetryPolicy | None = None,
    ) -> ChatResponse:
        def attempt(request_to_send: ChatRequest) -> ChatResponse:
            return self._send_and_settle(prompt.name, request_to_send)

        return send_with_retry(self._chat, request, attempt, policy or self._retry_policy)

    def _send_and_settle(self, question: str, request: ChatRequest) -> ChatResponse:
        """Send one request; reserve its cost before and settle it after."""
        prompt_tokens = sum(tokens.count(one.text) for one in request.messages) + tokens.count(
            request.system
        )
        estimate = Usage(
            prompt_tokens + (_SCHEMA_TOKENS if request.schema else 0), request.max_tokens
        )
        most = TokenUse(estimate.input_tokens, output_tokens=estimate.output_tokens)
        cost = RequestCost(self.identity, most, kind=question, work="background")
        hold = self._ledger.reserve(cost)
        try:
            response = _complete(self._chat, request, question)
        except ProviderError as error:
            # A response that came after the timeout was generated, and will be charged.
            billed_anyway = isinstance(error, ProviderUnavailable) and error.billed
            if isinstance(error.usage, Usage) or billed_anyway:
                used = error.usage if isinstance(error.usage, Usage) else estimate
                self._ledger.settle(hold, used)
            else:
                self._ledger.release(hold)
            raise
        except BaseException:
            self._ledger.release(hold)
            raise
        self._ledger.settle(hold, response.usage)
        return response


def _complete(chat: Chat, request: ChatRequest, question: str) -> ChatResponse:
    """Send a request, and record the span of it."""
    provider, _, model = chat.identity.partition(":")
    attributes: dict[str, telemetry.Value] = {
        telemetry.OPERATION: "chat",
        telemetry.PROVIDER: telemetry.GEN_AI_PROVIDERS.get(provider, provider),
        telemetry.MODEL: model,
        "lore.purpose": question,
    }
    with telemetry.span(telemetry.model_span("chat", model), attributes, kind="client") as span:
        response = chat.complete(request)
        used = response.usage
        span.set(telemetry.INPUT_TOKENS, used.input_tokens)
        span.set(telemetry.OUTPUT_TOKENS, used.output_tokens)
        span.set(telemetry.CACHE_READ_TOKENS, used.cache_read_tokens)
        span.set(telemetry.CACHE_WRITE_TOKENS, used.cache_write_tokens)
    return response


def clean_output(text: str) -> str:
    """Return model output as text that can be stored, without our own fence lines."""
    return _FENCE.sub("", words.clean(text))


def _parse_log(text: str, segment: Segment) -> Iterator[LogLine]:
    """Parse a log into lines with their source messages, and a line for each new day."""
    grounding = Grounding(segment.messages)
    days = {one.ordinal: f"{one.at:%Y-%m-%d}" for one in segment.messages}
    day = ""
    sources: tuple[int, ...] = ()
    for line in text.splitlines():
        content, sources = _parse_line(line, grounding, sources)
        if not content or not sources:
            continue
        if days[sources[0]] != day:
            day = days[sources[0]]
            yield LogLine(day)
        yield LogLine(
            tokens.clip(content, _MAX_LINE_TOKENS), grounding.sources_of(content, sources)
        )


def _parse_line(
    line: str, grounding: Grounding, former: tuple[int, ...]
) -> tuple[str, tuple[int, ...]]:
    """Return a line without its numbers, and those numbers that are messages.

    A line without numbers continues the previous one. Lines before the first numbers, or with
    invented numbers only, have no sources.
    """
    numbered = _NUMBERED.match(line)
    if numbered is None:
        return line.strip(), former
    return numbered[2].strip(), grounding.existing(_parse_numbers(numbered[1]))


def _parse_numbers(text: str) -> Iterator[int]:
    for piece in re.split(r"[,;]", text):
        ends = [int(end[:9]) for end in re.split(r"[–-]", piece) if end.strip().isdecimal()]
        if len(ends) == 2 and 0 <= ends[1] - ends[0] <= _MAX_RANGE:
            yield from range(ends[0], ends[1] + 1)
        else:
            yield from ends


def _parse_condensed_line(line: str, shown: set[int]) -> LogLine:
    """Return a line of a condensed log, with those of its numbers that were shown."""
    numbered = _NUMBERED.match(line)
    if numbered is None:
        return LogLine(line.strip())
    sources = {number for number in _parse_numbers(numbered[1]) if number in shown}
    return LogLine(numbered[2].strip(), tuple(sorted(sources)))


def _fit_lines(lines: Sequence[LogLine], limit_tokens: int) -> list[LogLine]:
    """Return lines within a limit; what is left out is never the end.

    The beginning says what was asked for, and the end how things stand. Of a condensed log the
    oldest lines of the timeline are left out first.
    """
    left = sum(_line_tokens(line) for line in lines) - limit_tokens
    dropped: set[int] = set()
    for place in _drop_order(lines):
        if left <= 0:
            break
        left -= _line_tokens(lines[place])
        dropped.add(place)
    fitting = [line for place, line in enumerate(lines) if place not in dropped]
    if left > 0 and fitting:
        fitting = [replace(fitting[-1], text=tokens.clip(fitting[-1].text, limit_tokens))]
    return [
        line
        for place, line in enumerate(fitting, 1)
        if not _is_title(line) or (place < len(fitting) and not _is_title(fitting[place]))
    ]


def _drop_order(lines: Sequence[LogLine]) -> list[int]:
    """Return the places of lines, the most dispensable first, without that of the last line."""
    last = len(lines) - 1
    timeline = [place for place, line in enumerate(lines) if line.text.lower() == _TIMELINE]
    first = timeline[-1] + 1 if timeline else len(lines) // 4
    return [*range(first, last), *reversed(range(min(first, max(last, 0))))]


def _line_tokens(line: LogLine) -> int:
    return tokens.count(line.text) + 1


def _is_title(line: LogLine) -> bool:
    """Return whether a line only introduces others: a day, or the title of a section."""
    return not line.sources and (_is_day(line.text) or line.text.lower() in _SECTIONS)


def _take_sentences(sentences: Sequence[CitedSentence]) -> Iterator[CitedSentence]:
    """Yield sentences while they fit the limit of an answer; the first is cut to it."""
    tokens_left = ANSWER_TOKENS
    for place, sentence in enumerate(sentences):
        size = tokens.count(sentence.text)
        if size > tokens_left:
            if place == 0:
                yield replace(sentence, text=tokens.clip(sentence.text, ANSWER_TOKENS))
            return
        tokens_left -= size
        yield sentence


def _is_day(text: str) -> bool:
    return bool(re.fullmatch(r"\d{4}-\d\d-\d\d", text))
