"""Names in the references of records, without secrets: the same replacement on all machines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lore.redaction.redactor import Redactor, redact_tree
from lore.store.sync_shapes import make_redacted_name, project_identity, session_identity
from lore.text.remotes import without_user


class ReferenceRedactor:
    """Replaces names that hold secrets; each name is examined once."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._clean: dict[str, str] = {}

    def redact(self, references: Mapping[str, Any]) -> dict[str, Any]:
        """Return references of a record as they may be stored and sent."""
        return {name: self._redact_one(name, one) for name, one in references.items()}

    def _redact_one(self, name: str, one: Any) -> Any:
        if name in ("session", "parent"):
            return self._redact_session(one)
        if name == "project":
            return self._redact_project(one)
        return redact_tree(self._redactor, one)

    def _redact_session(self, session: Mapping[str, Any]) -> dict[str, Any]:
        project = session["project"]
        redacted = {**session, "project": project and self._redact_project(project)}
        agent, name = session["agent"], session["external_id"]
        if self._holds_secret(agent) or self._holds_secret(name):
            name = make_redacted_name(session_identity(agent, name))
            redacted |= {"agent": self._redact_name(agent), "external_id": name}
        return redacted

    def _redact_project(self, project: Mapping[str, str]) -> dict[str, str]:
        path, remote, name = project["path"], without_user(project["remote"]), project["name"]
        if self._holds_secret(remote):
            remote = make_redacted_name(project_identity(remote, path))
        if self._holds_secret(path):
            path = make_redacted_name(project_identity("", path))
        return {**project, "path": path, "remote": remote, "name": self._redact_name(name)}

    def _holds_secret(self, name: str) -> bool:
        return self._redact_name(name) != name

    def _redact_name(self, name: str) -> str:
        if name not in self._clean:
            self._clean[name] = self._redactor.redact(name)
        return self._clean[name]
