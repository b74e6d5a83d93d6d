"""The command line: `lore`."""

from __future__ import annotations


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; what agents start for every session is quicker without the rest."""
    import sys

    from lore.cli import quick

    given = sys.argv[1:] if arguments is None else arguments
    if not quick.run(given):
        from lore.cli import app

        app.main(arguments)


__all__ = ["main"]
