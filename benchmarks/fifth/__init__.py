"""A fifth corpus that the author of the redaction rules does not see: secrets, and what is none."""

from __future__ import annotations

from fifth.corpus import benign, secrets

__all__ = ["benign", "secrets"]
