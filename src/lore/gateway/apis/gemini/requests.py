"""Requests of Gemini's generateContent API: parse, expand markers, rewrite by a plan."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from lore.gateway.apis import entry_keys, json_values, markers, prompt_layout
from lore.gateway.apis.adapter import FindMarker, PromptAdditions, Request, Tool
from lore.gateway.apis.entry_keys import KeyedBlock
from lore.gateway.apis.json_values import Json, as_object, as_text
from lore.gateway.apis.markers import Atom, Marker
from lore.gateway.apis.prompt_layout import ItemFormat
from lore.records.gateway import Block, BlockKind, Entry, Plan, Voice

IMAGE_CHARS = 1_032
"""258 tokens for an image or a tile of one, from Google's documentation."""

_MODEL_PATH = re.compile(r"/models/([^:/?]+):(\w+)")
_CACHE_FIELDS = ("cachedContent", "cached_content")
_DECLARATION_FIELDS = ("functionDeclarations", "function_declarations")
_MODALITY_FIELDS = ("responseModalities", "response_modalities")
_TEXT_ONLY: tuple[object, ...] = (None, [], ["TEXT"])
_TOOL_COMPATIBLE_CONFIG: dict[tuple[str, str], tuple[object, ...]] = {
    ("candidateCount", "candidate_count"): (None, 1),
    ("responseMimeType", "response_mime_type"): (None, "", "text/plain"),
    _MODALITY_FIELDS: _TEXT_ONLY,
}
"""Settings that are compatible with function calls, in both spellings of the API."""


class CallNumbering:
    """Assigns ids to calls and results without one: the nth result answers the nth call."""

    def __init__(self) -> None:
        self._met: Counter[tuple[str, str]] = Counter()

    def id_of(self, side: str, item: Json) -> str:
        """Return the id of a call or a result."""
        if as_text(item.get("id")):
            return as_text(item["id"])
        name = as_text(item.get("name"))
        self._met[side, name] += 1
        return entry_keys.fallback_call_id(name, self._met[side, name])


def parse_request(body: bytes, path: str = "") -> Request:
    """Parse a request to a path, or raise `InvalidInput` if its shape is not supported."""
    match = _MODEL_PATH.search(path)
    model, verb = (match[1], match[2]) if match else ("", "")
    is_stream = verb.startswith("stream")
    streams = is_stream and "alt=sse" in path
    request = parse_document(body, json_values.parse_object(body), model=model, streams=streams)
    return request if streams or not is_stream else replace(request, can_offer_recall=False)


def parse_document(
    body: bytes,
    document: Json,
    *,
    model: str = "",
    streams: bool = False,
    is_expanded: bool = False,
) -> Request:
    """Parse a request from its JSON document."""
    contents = json_values.require_objects(document.get("contents"))
    tools = json_values.objects_in(document.get("tools"))
    system = document.get("systemInstruction", document.get("system_instruction"))
    fixed = [*map(json_values.to_json_text, tools), json_values.to_json_text(system)]
    places = _content_spans(contents)
    return Request(
        body=body,
        document=document,
        dialogue=entry_keys.make_dialogue(
            model or as_text(document.get("model")),
            contents,
            places,
            partial(parse_entry, numbering=CallNumbering()),
            fixed,
        ),
        entry_spans=places,
        streams=streams,
        tools=frozenset(_function_names(tools)),
        is_expanded=is_expanded,
        has_history=not any(document.get(name) for name in _CACHE_FIELDS),
        can_offer_recall=_supports_recall(document, tools) and prompt_layout.supports_tools(model),
    )


def _supports_recall(document: Json, tools: list[Json]) -> bool:
    """Return whether the response may contain function calls.

    Many models reject functions together with built-in tools or JSON output.
    """
    config = get_field(document, "generationConfig")
    has_others = any(set(tool) - set(_DECLARATION_FIELDS) for tool in tools)
    return not has_others and all(
        config.get(name) in usual
        for names, usual in _TOOL_COMPATIBLE_CONFIG.items()
        for name in names
    )


def asks_for_media(document: Json) -> bool:
    """Return whether the response contains media, which would include all text of the prompt."""
    config = get_field(document, "generationConfig")
    return any(config.get(name) not in _TEXT_ONLY for name in _MODALITY_FIELDS)


def _function_names(tools: list[Json]) -> Iterator[str]:
    for tool in tools:
        for one in _DECLARATION_FIELDS:
            yield from (
                as_text(function.get("name")) for function in json_values.objects_in(tool.get(one))
            )


def _content_spans(contents: list[Json]) -> tuple[tuple[int, int], ...]:
    """Return the range of contents of each entry; consecutive model contents are one entry."""
    return entry_keys.entry_spans([one.get("role") for one in contents], ("model",))


def join_answers(contents: list[Json]) -> list[Json]:
    """Return contents with the pieces of each answer joined."""
    return [
        _join_contents(contents[at:end]) if end > at + 1 else contents[at]
        for at, end in _content_spans(contents)
    ]


def _join_contents(pieces: list[Json]) -> Json:
    parts: list[Json] = []
    for piece in pieces:
        for part in json_values.objects_in(piece.get("parts")):
            add_part(parts, part)
    return {**pieces[0], "parts": parts}


def add_part(parts: list[Json], part: Json) -> None:
    """Append a part; join it with the last one if both are texts of the same kind."""
    last = parts[-1] if parts else {}
    if _text_kind(part) is not None and _text_kind(part) == _text_kind(last):
        parts[-1] = {**last, **part, "text": last["text"] + part["text"]}
    elif part.get("text") != "" or len(part) > 1:
        parts.append(part)


def _text_kind(part: Json) -> tuple[bool, bool] | None:
    """Return the kind of a text part; a signed text is not joined with what follows."""
    if not isinstance(part.get("text"), str):
        return None
    return part.get("thought") is True, "thoughtSignature" in part


def parse_entry(contents: list[Json], numbering: CallNumbering) -> Entry:
    """Return the contents of one side as an entry."""
    voice: Voice = "assistant" if contents[0].get("role") == "model" else "user"
    parts: list[Json] = []
    for part in (
        part for content in contents for part in json_values.objects_in(content.get("parts"))
    ):
        if voice == "assistant":
            # Clients join texts whether they are signed or not.
            unsigned = {name: part[name] for name in part if name != "thoughtSignature"}
            add_part(parts, unsigned)
        else:
            parts.append(part)
    pieces = [_parse_part(part, numbering) for part in parts]
    if contents[0].get("role") == "function":  # text with this role comes from a program
        pieces = [_as_program_output(piece) for piece in pieces]
    return entry_keys.make_entry(voice, pieces)


def _as_program_output(piece: KeyedBlock) -> KeyedBlock:
    block = piece.block
    kind: BlockKind = "other" if block.kind == "text" else block.kind
    return piece._replace(block=replace(block, kind=kind))


def get_field(part: Json, name: str) -> Json:
    """Return a field of a part, in either spelling of the API."""
    spelled = re.sub(r"([A-Z])", lambda match: "_" + match[1].lower(), name)
    return as_object(part.get(name)) or as_object(part.get(spelled))


def _parse_part(part: Json, numbering: CallNumbering) -> KeyedBlock:
    call, result = get_field(part, "functionCall"), get_field(part, "functionResponse")
    if call:
        arguments = json_values.to_json_text(call.get("args"))
        name, call_id = as_text(call.get("name")), numbering.id_of("call", call)
        # Clients assign ids to calls without one.
        block = Block("call", len(arguments) + len(name), arguments, call_id, name, by_id=False)
        return KeyedBlock(block, entry_keys.digest(name, arguments))
    if result:
        text, call_id = _result_text(result), numbering.id_of("result", result)
        name = as_text(result.get("name"))
        return KeyedBlock(Block("result", len(text), text, call_id, name), call_id)
    if isinstance(part.get("text"), str):
        text = part["text"]
        if part.get("thought") is True:
            return KeyedBlock(Block("reasoning", len(text), text), text)
        return KeyedBlock(Block("text", len(text), text), entry_keys.strip_reminders(text))
    json_text = json_values.to_json_text(part)
    is_picture = bool(get_field(part, "inlineData") or get_field(part, "fileData"))
    size = IMAGE_CHARS if is_picture else len(json_text)
    sort = next(iter(part), "")
    return KeyedBlock(Block("other", size, f"[{sort}]", tool=sort), entry_keys.digest(json_text))


def _result_text(result: Json) -> str:
    """Return the text of a result, which clients put into one of several fields."""
    response = as_object(result.get("response"))
    for name in ("output", "result", "error"):
        if len(response) == 1 and isinstance(response.get(name), str):
            return as_text(response[name])
    return json_values.to_json_text(response)


_SCHEMA_KEYWORDS = ("type", "description", "enum", "required")
"""Schema keywords that every version of the API accepts for parameters, besides nested schemas."""


def rewrite_request(request: Request, plan: Plan, texts: PromptAdditions) -> bytes:
    """Return the prompt that a plan describes; the client's own bytes if nothing changes."""
    is_wordless = prompt_layout.is_media_model(request.dialogue.model) or asks_for_media(
        request.document
    )
    if is_wordless or prompt_layout.is_passthrough(request, plan, texts):
        return request.body
    document = dict(request.document)
    contents = json_values.require_objects(document["contents"])
    document["contents"] = prompt_layout.arrange_items(contents, request, plan, texts, _ITEM_FORMAT)
    if texts.knowledge and not prompt_layout.is_minimal_model(request.dialogue.model):
        name = "system_instruction" if "system_instruction" in document else "systemInstruction"
        system = as_object(document.get(name))
        parts = [*json_values.objects_in(system.get("parts")), {"text": texts.knowledge}]
        document[name] = {**system, "parts": parts}
    if texts.recall_tool:
        prompt_layout.add_tool(document, tool_definition(texts.recall_tool))
    return json_values.to_json_bytes(document)


def tool_definition(tool: Tool) -> Json:
    """Return a tool in the format of this API."""
    parameters = _plain_schema(tool.schema)
    declaration = {"name": tool.name, "description": tool.description, "parameters": parameters}
    return {"functionDeclarations": [declaration]}


def _plain_schema(schema: Json) -> Json:
    """Reduce a JSON schema to the keywords of this API, which rejects requests with others."""
    variants = [
        one for one in json_values.objects_in(schema.get("anyOf")) if one.get("type") != "null"
    ]
    source = {**schema, **variants[0]} if variants else schema
    plain = {name: source[name] for name in _SCHEMA_KEYWORDS if name in source}
    for name, nested in as_object(source.get("properties")).items():
        plain.setdefault("properties", {})[name] = _plain_schema(as_object(nested))
    if "items" in source:
        plain["items"] = _plain_schema(as_object(source["items"]))
    return plain


def _user_content(texts: Sequence[str]) -> Json:
    return {"role": "user", "parts": [{"text": one} for one in texts]}


def _model_content(text: str) -> Json:
    return {"role": "model", "parts": [{"text": text}]}


def _normalize_content(content: Json, annotations: Mapping[int, str]) -> Json:
    """Return a content with its results sorted by id."""
    parts = [
        _annotate_part(part, annotations[at]) if at in annotations else part
        for at, part in enumerate(json_values.objects_in(content.get("parts")))
    ]
    ordered = prompt_layout.sort_results(
        parts,
        lambda part: bool(get_field(part, "functionResponse")),
        lambda part: as_text(get_field(part, "functionResponse").get("id")),
    )
    return {**content, "parts": ordered}


def _annotate_part(part: Json, annotation: str) -> Json:
    name = "functionResponse" if "functionResponse" in part else "function_response"
    result = {**get_field(part, "functionResponse"), "response": {"output": annotation}}
    return {**part, name: result}


def _with_note(content: Json, note: str) -> list[Json]:
    return [{**content, "parts": [*json_values.objects_in(content.get("parts")), {"text": note}]}]


_ITEM_FORMAT = ItemFormat(_user_content, _model_content, _normalize_content, _with_note)


def expand_markers(request: Request, find: FindMarker) -> Request:
    """Replace markers by the recall calls and results that they stand for."""
    if not markers.may_have_markers(request.body):
        return request
    find = markers.find_once(find)
    contents: list[Json] = []
    waiting: list[Json] = []
    is_expanded = False
    for content in join_answers(json_values.require_objects(request.document["contents"])):
        atoms = list(_split_content(content, find))
        if any(isinstance(atom, Marker) for atom in atoms):
            expanded_contents, waiting = _expand_content(content, atoms)
            contents += expanded_contents
            is_expanded = True
        elif waiting and content.get("role") != "model":
            parts = [*waiting, *json_values.objects_in(content.get("parts"))]
            contents.append({**content, "parts": parts})
            waiting = []
        else:
            contents.append(content)
    if not is_expanded:
        return request
    if waiting:
        contents.append({"role": "user", "parts": waiting})
    expanded = parse_document(
        request.body,
        {**request.document, "contents": contents},
        model=request.dialogue.model,
        streams=request.streams,
        is_expanded=True,
    )
    return replace(expanded, can_offer_recall=request.can_offer_recall)


def _split_content(content: Json, find: FindMarker) -> Iterator[Atom]:
    """Yield the parts of a model content, with markers in place of their texts."""
    if content.get("role") != "model":
        return
    for part in json_values.objects_in(content.get("parts")):
        text = as_text(part.get("text"))
        if not markers.may_have_markers(text.encode(errors="replace")):
            yield part
            continue
        for piece in markers.split_markers(text, find):
            yield {**part, "text": piece} if isinstance(piece, str) else piece


def _expand_content(content: Json, atoms: list[Atom]) -> tuple[list[Json], list[Json]]:
    """Return the contents that one was joined from, and the results for the next user content.

    Turns have to alternate, so results with no model content after them wait, too.
    """
    apart = markers.split_rounds(atoms)
    contents: list[Json] = []
    for parts, answered in apart.closed:
        contents.append({**content, "parts": parts})
        contents.append({"role": "user", "parts": [function_response(one) for one in answered]})
    waiting = [function_response(one) for one in apart.waiting]
    if apart.rest:
        contents.append({**content, "parts": apart.rest})
    elif contents:
        waiting = contents.pop()["parts"]
    return contents, waiting


def function_response(marker: Marker) -> Json:
    """Return the result of a call as a part."""
    call = as_object(marker.call.get("functionCall"))
    identity = {name: call[name] for name in ("id", "name") if name in call}
    output = marker.result or markers.SEARCH_FAILED_TEXT
    return {"functionResponse": {**identity, "response": {"output": output}}}
