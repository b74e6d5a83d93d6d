"""Summarizers that read conversations for the digest: chat models, or offline rules."""

from __future__ import annotations

from lore.llm.summarizer import OpenedSummarizer, Summarizer, open_summarizer

__all__ = ["OpenedSummarizer", "Summarizer", "open_summarizer"]
