"""A reader in a process of its own, to be killed: give it a home and a file, or a folder."""

from __future__ import annotations

import sys
from pathlib import Path

from lore.capture.transcript_capture import ReadOptions, capture_files, find_files, read_file
from lore.store.database import open_database
from tests.transcripts import find_tiny


def main(home: Path, file: Path) -> None:
    """Read a file in tiny batches, or the files of a folder together, and say so after each."""
    database = open_database(home / "memory.db", busy_timeout_s=30, backups=home / "backups")

    def tell(_size: int) -> None:
        sys.stdout.write("batch\n")
        sys.stdout.flush()

    reading = ReadOptions(database, find_tiny, progress=tell, batch_messages=5)
    if file.is_dir():
        found = find_files([file], (), home)
        capture_files(reading, found, progress=lambda done, _total: tell(done))
    else:
        read_file(reading, file)
    database.close()
    sys.stdout.write("done\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
