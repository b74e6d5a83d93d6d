"""A picture of the layers: what it tells."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from lore.evals import economics, layers_picture
from lore.evals.replaying import Outcome, Size


def test_a_picture_tells_the_session_and_its_busts():
    sizes = [Size(0.0, n % 3, 100, 1_000 * n, busts=n == 5) for n in range(20)]
    one = Outcome(usd=1.5, questions=2, available=1, sizes=sizes)
    result = economics.Result("", {"m": {"long <session>": {"full": one, "gradient_horizon": one}}})
    drawn = ET.fromstring(layers_picture.draw(result))
    told = "".join(drawn.itertext())
    assert "long <session>" in told
    assert "1 of 2" in told
    assert sum(line.get("stroke") == "#b3261e" for line in drawn.iter()) == 1
