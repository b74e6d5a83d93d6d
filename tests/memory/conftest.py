"""Memories are tested on both engines."""

from tests.engines import engine as engine
from tests.engines import postgres_url as postgres_url
from tests.engines import pytest_generate_tests as pytest_generate_tests
