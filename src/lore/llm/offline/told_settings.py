"""Settings that an agent says have a value now."""

from __future__ import annotations

import re
from typing import NamedTuple

_NAME = r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+"
_VALUE = r"`[^`\s]{1,60}`|\"[^\"\n]{1,60}\"|-?\d[\w.]{0,20}|true|false|on|off|enabled|disabled"
_CONSTANT = re.compile(
    rf"`(?P<inner>{_NAME})\s?=\s?(?P<inner_value>[^`\s]{{1,80}})`"
    rf"|`?\b(?P<setting>{_NAME})\b`?\s(?:now\s)?(?:=|is(?:\snow)?(?:\sset\sto)?|defaults\sto)\s"
    rf"(?P<value>{_VALUE})(?=[\s.,;)]|$)"
    rf"|\b(?:set|raised|lowered|changed)\s`?(?P<set>{_NAME})`?\s(?:from\s\S{{1,40}}\s)?to\s"
    rf"(?P<set_value>{_VALUE})(?=[\s.,;)]|$)"
)
"""A name in capitals with a value is a setting, whatever else the sentence says."""

_COMMIT = re.compile(r"^[0-9a-f]{7,12}[:.,]\s+|\s?\((?:commit )?[0-9a-f]{7,12}\)")
_TRIED = re.compile(
    r"\b(?:if|would|could|might|should|need|needs|when|try|tried|run|running|test|tests|tested"
    r"|can|use|uses|using|your|disables?|enables?|opt-?out|respects?"
    r"|instead|e\.g\.|example|want|was|were|unset"
    r"|checks?|bypass\w*|env(?:ironment)? var\w*)\b|\?"
    r"|^set `[A-Z_]+=",
    re.IGNORECASE,
)
_PLACE = re.compile(r"\b(?:in|at|under|inside)\s+`?([~./\w\-]*[/.][\w./\-]*\w)`?")


class Setting(NamedTuple):
    """A setting, its value, and where it stands."""

    name: str
    value: str
    location: str


def find(sentence: str) -> Setting | None:
    """Return the setting that a sentence says has a value; none if it may have several."""
    found = list(_CONSTANT.finditer(sentence))
    if len(found) != 1 or _TRIED.search(sentence):
        return None
    one = found[0]
    name = one["inner"] or one["setting"] or one["set"]
    value = (one["inner_value"] or one["value"] or one["set_value"]).strip('`"')
    place = _PLACE.search(sentence)
    return Setting(name, value, place[1] if place else "")


def without_commit(sentence: str) -> str:
    """Return a sentence without the commit that it reports."""
    return _COMMIT.sub("", sentence)
