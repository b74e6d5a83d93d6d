"""What is specific to SQLite; the rest of the store imports it from here."""

from lore.store.sqlite import full_text as full_text
from lore.store.sqlite.connection import (
    READER_KIB as READER_KIB,
)
from lore.store.sqlite.connection import (
    WRITER_KIB as WRITER_KIB,
)
from lore.store.sqlite.connection import (
    SqliteConnection as SqliteConnection,
)
from lore.store.sqlite.connection import (
    check_library as check_library,
)
from lore.store.sqlite.connection import (
    describe_library as describe_library,
)
from lore.store.sqlite.connection import (
    integrity_problems as integrity_problems,
)
from lore.store.sqlite.connection import (
    oldest_program as oldest_program,
)
from lore.store.sqlite.connection import (
    open_connection as open_connection,
)
from lore.store.sqlite.connection import (
    roll_back as roll_back,
)
from lore.store.sqlite.connection import (
    set_oldest_program as set_oldest_program,
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
    erase_traces as erase_traces,
)
from lore.store.sqlite.database_file import (
    leftover_copies as leftover_copies,
)
from lore.store.sqlite.database_file import (
    open_alone as open_alone,
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
from lore.store.sqlite.file_rows import (
    dump_rows as dump_rows,
)
from lore.store.sqlite.file_rows import (
    load_rows as load_rows,
)
