from __future__ import annotations

from lore.records import Title
from lore.tools import names

SHORT = {"01a1e003-d3de": "01a1e003"}


def test_a_name_stands_on_one_line_in_the_order_of_the_columns():
    title = Title("01a1e003-d3de", "Deploys go\nthrough ops", "decision", 1, 40, 3)
    line = names.line(names.named(title), SHORT)
    assert line == "01a1e003 1 decision 40 3 Deploys go through ops"
    assert names.COLUMNS == "id depth kind tokens children title"
