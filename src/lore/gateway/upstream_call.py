"""The call of a model provider that a request became, for its span."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lore import telemetry
from lore.budget.estimate import CostEstimate
from lore.records import TokenUse

if TYPE_CHECKING:
    from opentelemetry.context import Context

_OPERATIONS = {"gemini": "generate_content"}
"""The operations of the semantic conventions by API; the others are chats."""


class UpstreamCall:
    """When a request went upstream and came back; its usage is known once the response is parsed.

    A tool loop asks several times: all of it is one call, with the sum of the usage.
    """

    def __init__(
        self, api: str, provider: str, order: CostEstimate, headers: Mapping[str, str]
    ) -> None:
        self._operation = _OPERATIONS.get(api, "chat")
        self._model = order.model
        self._attributes: dict[str, telemetry.Value] = {
            telemetry.OPERATION: self._operation,
            telemetry.PROVIDER: telemetry.GEN_AI_PROVIDERS.get(provider, provider),
            telemetry.MODEL: order.model,
            "gen_ai.request.stream": order.streams,
            "lore.api": api,
        }
        if "x-lore-layer" in headers:
            self._attributes["lore.layer"] = int(headers["x-lore-layer"])
        self._parent: Context | None = None
        self._started_ns = self._ended_ns = self._status = 0

    def begin(self) -> None:
        """Note that the request is sent now, within the current span."""
        self._parent = telemetry.current()
        self._started_ns = telemetry.now_ns()

    def finish(self, status: int) -> None:
        """Note that the response has ended."""
        self._ended_ns, self._status = telemetry.now_ns(), status

    def report(self, used: TokenUse, reasons: Sequence[Any], outcome: str, rounds: int) -> None:
        """Record the span; of a request that was never sent, there is none."""
        if not self._started_ns:
            return
        error = str(self._status) if self._status >= 400 else ""
        written = used.cache_write_tokens + used.cache_write_1h_tokens
        telemetry.record(
            telemetry.model_span(self._operation, self._model),
            self._attributes
            | {
                telemetry.INPUT_TOKENS: used.input_tokens,
                telemetry.OUTPUT_TOKENS: used.output_tokens,
                telemetry.CACHE_READ_TOKENS: used.cache_read_tokens,
                telemetry.CACHE_WRITE_TOKENS: written,
                telemetry.FINISH_REASONS: tuple(map(str, reasons)),
                telemetry.STATUS: self._status,
                "lore.rounds": rounds,
            },
            kind="client",
            parent=self._parent,
            started_ns=self._started_ns,
            ended_ns=self._ended_ns or telemetry.now_ns(),
            error=error or (outcome if outcome != "complete" else ""),
        )
