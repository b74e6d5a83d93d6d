"""The longest name that is stored."""

from __future__ import annotations

import pytest

from lore.errors import InvalidInput
from lore.text.name_limit import LONGEST_NAME, check_name, is_short, shorten_name


@pytest.mark.parametrize("sign", ["x", "\u00e9", "\u2603", "\U0001f600", "\udc80"])
def test_a_name_is_shortened_to_one_that_fits(sign: str) -> None:
    fits = sign * (LONGEST_NAME // len(sign.encode("utf-8", "surrogatepass")))
    assert shorten_name(fits) == fits == check_name(fits, "A project")
    short = shorten_name(fits + sign)
    assert is_short(short)
    assert shorten_name(short) == short
    assert short != shorten_name(fits + sign + sign)
    with pytest.raises(InvalidInput, match="A project has a name of"):
        check_name(fits + sign, "A project")
