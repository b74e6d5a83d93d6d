# What developers do here. `just` alone lists it.

default:
    @just --list

# everything that CI checks
check:
    bash .ci/run

test *args:
    uv run pytest {{args}}

lint:
    uv run ruff check
    uv run ruff format --check

types:
    uv run mypy

contracts:
    uv run lint-imports

# pin all dependencies anew, with hashes and without naming a host
lock:
    uv pip compile pyproject.toml --universal --generate-hashes --no-emit-index-url --no-header --all-extras --group dev --group model --group clients --upgrade -o requirements.lock
    uv run python -m tests.house.lock --write

# pages under docs/reference that are made from the code
reference:
    uv run python -m tests.house.reference --write

bench:
    uv run python benchmarks/embed.py
    uv run python benchmarks/latency.py
    uv run python benchmarks/durability.py
    uv run python benchmarks/redaction.py
    uv run python benchmarks/capture.py
    uv run python benchmarks/gateway.py

# half an hour of real work before one daemon
soak *args:
    uv run python benchmarks/soak.py {{args}}
