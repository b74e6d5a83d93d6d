"""Silencing: the ONNX runtime reports to its makers unless it is told not to."""

from __future__ import annotations

import os

SWITCH = "ORT_DISABLE_TELEMETRY"
"""From 1.29 on, its builds for Linux and macOS give a machine an id, write down what models it runs
and send that. They look for this once, as they are loaded; their own function comes too late."""


def silence_runtime() -> None:
    """Let the runtime report nothing, in this process and in those that it starts."""
    os.environ[SWITCH] = "1"  # noqa: TID251 - it is written, not read
