"""The SVG chart of the layers."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from lore.evals import economics
from lore.evals.replay import PromptSize, ReplayOutcome


def test_a_chart_shows_the_session_its_layers_and_busts():
    sizes = [PromptSize(0.0, n // 7, 100, 1_000 * n, busts=n == 5) for n in range(20)]
    one = ReplayOutcome(usd=1.5, questions=2, available=1, sizes=sizes)
    sessions = {"long <session>": {"full": one, "gradient_horizon": one}}
    result = economics.Result("", {"m": sessions, "n": sessions}, windows={"m": 8_000})
    drawn = ET.fromstring(economics.draw(result))
    told = "".join(drawn.itertext())
    assert "long <session>" in told
    assert "1 of 2" in told
    assert told.count("tokens in the prompt") == 2
    assert told.count("window of the model: 8 K") == 1
    assert sum(one.tag.endswith("line") and one.get("class") == "bust" for one in drawn.iter()) == 2
    bands = [one.text for one in drawn.iter() if one.get("fill") == "#ffffff"]
    assert bands == ["0", "1", "2"] * 2
