"""Orders: sentences that begin with what someone is to do now."""

from __future__ import annotations

import re

_ORDER = re.compile(
    r"^(?:please\s+|now\s+|just\s+|ok(?:ay)?\s+|also\s+|and\s+|then\s+)*(?:add|address|adjust|answer"
    r"|apply|ask|build|bump|change|check|clean|close|commit|compare|continue|convert|copy|create"
    r"|cut|debug|delete|deploy|describe|design|do|document|draft|drop|ensure|explain|explore"
    r"|extract|fetch|find|finish|fix|follow|format|generate|get|give|go|have|help|implement"
    r"|improve|include|install|investigate|keep|leave|list|look|make|merge|migrate|move|open"
    r"|optimi[sz]e|port|prepare|print|proceed|provide|pull|push|put|read|rebase|refactor|remove"
    r"|rename|replace|report|research|reset|resolve|restore|return|revert|review|rewrite|run|see"
    r"|set|show|simplify|skip|solve|split|squash|start|stop|summari[sz]e|switch|take|tell|test"
    r"|trace|translate|try|undo|update|upgrade|use|verify|wait|write|yes|no|handle|consider|avoid|pass|call|store|validate|treat|wire|define|register|determine|detect|allow|guard|wrap|track|load|parse|persist|reuse|mark|group)\b",
    re.IGNORECASE,
)


_FOR = re.compile(r"^(?:for|in|on) [^,;:.]{3,50}, (?=[a-z])", re.IGNORECASE)
"""What an order is for may stand before it."""


def is_order(sentence: str) -> bool:
    """Tell whether a sentence begins with an order."""
    return bool(_ORDER.match(_FOR.sub("", sentence)))
