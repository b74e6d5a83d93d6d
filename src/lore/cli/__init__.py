"""The command line: `lore`."""

from __future__ import annotations


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; `lore mcp` and `lore hook` take a fast path without typer."""
    import gc
    import sys

    from lore.cli import fast_path

    words = sys.argv[1:] if arguments is None else arguments
    if not fast_path.run(words):
        gc.disable()  # modules are no garbage, and the search for it takes 5 ms
        from lore.cli import app

        gc.freeze()
        gc.enable()
        app.main(arguments)


__all__ = ["main"]
