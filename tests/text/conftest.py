from __future__ import annotations

from hypothesis import settings

settings.register_profile("patient", deadline=None)  # another's work on this machine is no failure
settings.load_profile("patient")
