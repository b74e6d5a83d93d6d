"""The command line as `python -m lore.cli`."""

from lore.cli import main

main()
