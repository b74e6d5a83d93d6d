"""The records of the domain: frozen, typed, and shared by all packages."""

from lore.records.answers import *  # noqa: F403 - this package is the union of its modules
from lore.records.explorer_records import *  # noqa: F403
from lore.records.gateway import *  # noqa: F403
from lore.records.kinds import *  # noqa: F403
from lore.records.knowledge import *  # noqa: F403
from lore.records.layer_records import *  # noqa: F403
from lore.records.maintenance import *  # noqa: F403
from lore.records.native_records import *  # noqa: F403
from lore.records.server_records import *  # noqa: F403
from lore.records.sessions import *  # noqa: F403
from lore.records.strategy_records import *  # noqa: F403
from lore.records.sync_records import *  # noqa: F403
from lore.records.task_records import *  # noqa: F403
