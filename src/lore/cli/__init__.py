"""The command line: `lore`."""

from lore.cli.app import main

__all__ = ["main"]
