"""What is SQLite's alone; the rest of the store takes it from here and would serve another."""

from lore.store.sqlite import word_tables
from lore.store.sqlite.connection import (
    READER_KIB,
    WRITER_KIB,
    Connection,
    Row,
    check_library,
    describe_library,
    open_connection,
)
from lore.store.sqlite.copying import copy_database, exchange, unfinished
from lore.store.sqlite.dialect import (
    GROWING,
    ID,
    NUMBERED,
    among,
    field_of,
    has_table,
    id_of,
    id_text,
    is_blank,
    listed,
    next_number,
    numbers,
    shares,
    texts,
)
from lore.store.sqlite.failures import translated
from lore.store.sqlite.upkeep import (
    companions,
    count_bytes,
    damage,
    empty_log,
    erase_traces,
    journal_of,
)

__all__ = [
    "GROWING",
    "ID",
    "NUMBERED",
    "READER_KIB",
    "WRITER_KIB",
    "Connection",
    "Row",
    "among",
    "check_library",
    "companions",
    "copy_database",
    "count_bytes",
    "damage",
    "describe_library",
    "empty_log",
    "erase_traces",
    "exchange",
    "field_of",
    "has_table",
    "id_of",
    "id_text",
    "is_blank",
    "journal_of",
    "listed",
    "next_number",
    "numbers",
    "open_connection",
    "shares",
    "texts",
    "translated",
    "unfinished",
    "word_tables",
]
