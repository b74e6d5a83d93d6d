"""Money as a person reads it."""

from __future__ import annotations


def dollars(usd: float) -> str:
    """Return an amount in cents, and in parts of a cent where there are any."""
    whole, _, part = f"{abs(usd):.6f}".partition(".")
    return f"{'-' if usd < 0 else ''}${whole}.{part.rstrip('0'):0<2}"
