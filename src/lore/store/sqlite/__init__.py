"""What is specific to SQLite; the rest of the store imports it from here."""

from lore.store.sqlite import full_text as full_text
from lore.store.sqlite.connection import (
    AUTOINCREMENT as AUTOINCREMENT,
)
from lore.store.sqlite.connection import (
    ID as ID,
)
from lore.store.sqlite.connection import (
    READER_KIB as READER_KIB,
)
from lore.store.sqlite.connection import (
    ROW_NUMBER as ROW_NUMBER,
)
from lore.store.sqlite.connection import (
    WRITER_KIB as WRITER_KIB,
)
from lore.store.sqlite.connection import (
    Connection as Connection,
)
from lore.store.sqlite.connection import (
    Row as Row,
)
from lore.store.sqlite.connection import (
    among as among,
)
from lore.store.sqlite.connection import (
    bound_values as bound_values,
)
from lore.store.sqlite.connection import (
    check_library as check_library,
)
from lore.store.sqlite.connection import (
    describe_library as describe_library,
)
from lore.store.sqlite.connection import (
    has_table as has_table,
)
from lore.store.sqlite.connection import (
    id_blob as id_blob,
)
from lore.store.sqlite.connection import (
    id_text as id_text,
)
from lore.store.sqlite.connection import (
    int_array as int_array,
)
from lore.store.sqlite.connection import (
    is_empty_database as is_empty_database,
)
from lore.store.sqlite.connection import (
    json_field as json_field,
)
from lore.store.sqlite.connection import (
    json_list_overlaps as json_list_overlaps,
)
from lore.store.sqlite.connection import (
    next_number as next_number,
)
from lore.store.sqlite.connection import (
    open_connection as open_connection,
)
from lore.store.sqlite.connection import (
    roll_back as roll_back,
)
from lore.store.sqlite.connection import (
    set_next_number as set_next_number,
)
from lore.store.sqlite.connection import (
    text_array as text_array,
)
from lore.store.sqlite.connection import (
    translate_error as translate_error,
)
from lore.store.sqlite.database_file import (
    checkpoint as checkpoint,
)
from lore.store.sqlite.database_file import (
    companion_files as companion_files,
)
from lore.store.sqlite.database_file import (
    copy_database as copy_database,
)
from lore.store.sqlite.database_file import (
    database_size as database_size,
)
from lore.store.sqlite.database_file import (
    erase_traces as erase_traces,
)
from lore.store.sqlite.database_file import (
    integrity_problems as integrity_problems,
)
from lore.store.sqlite.database_file import (
    journal_mode as journal_mode,
)
from lore.store.sqlite.database_file import (
    leftover_copies as leftover_copies,
)
from lore.store.sqlite.database_file import (
    open_scratch as open_scratch,
)
from lore.store.sqlite.database_file import (
    schema_objects as schema_objects,
)
from lore.store.sqlite.database_file import (
    swap_database as swap_database,
)
from lore.store.sqlite.database_file import (
    write_offline as write_offline,
)
