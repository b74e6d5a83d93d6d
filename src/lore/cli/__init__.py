"""The command line: `lore`."""

from __future__ import annotations


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; `lore mcp` and `lore hook` take a fast path without typer."""
    import sys

    from lore.cli import fast_path

    words = sys.argv[1:] if arguments is None else arguments
    if not fast_path.run(words):
        from lore.cli import app

        app.main(arguments)


__all__ = ["main"]
