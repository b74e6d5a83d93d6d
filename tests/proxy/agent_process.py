"""An agent that talks to a stdio proxy through pipes."""

from __future__ import annotations

import json
import os
import threading
from typing import Any

from lore.proxy.stdio_proxy import FindDaemon, LoadHandshake, StdioProxy


class Agent:
    """An agent at the other end of a bridge, which reads one answer after the other."""

    def __init__(self, reach: FindDaemon, greet: LoadHandshake = lambda: None) -> None:
        reading, self._writing = os.pipe()
        answers, out = os.pipe()
        self._given, self._out = os.fdopen(reading, "rb"), os.fdopen(out, "wb")
        self._answers = os.fdopen(answers, "rb")
        bridge = StdioProxy(reach, "", self._out, greet)
        self._thread = threading.Thread(target=bridge.run, args=(self._given,))
        self._thread.start()

    def say(self, message: object) -> None:
        """Send a message."""
        os.write(self._writing, json.dumps(message).encode() + b"\n")

    def hear(self) -> Any:
        """Wait for an answer."""
        return json.loads(self._answers.readline())

    def ask(self, message: object) -> Any:
        """Send a request and wait for an answer."""
        self.say(message)
        return self.hear()

    def hang_up(self) -> None:
        """End the input, and wait for the bridge to end."""
        os.close(self._writing)
        self._thread.join(60)
        assert not self._thread.is_alive()
        for stream in (self._given, self._out, self._answers):
            stream.close()
