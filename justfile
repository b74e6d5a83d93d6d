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
    uv pip compile pyproject.toml --universal --generate-hashes --no-emit-index-url --no-header --all-extras --group dev --group model --group clients --group browser --upgrade -o requirements.lock
    uv run python -m tests.house.lock --write

# pages under docs/reference that are made from the code
reference:
    uv run python -m tests.house.reference --write

# the web explorer, into the package; with `npm run dev` in explorer/ it reloads as you type
explorer:
    python3 explorer/build.py

# the explorer's types and tests
explorer-check:
    cd explorer && npm install --no-save --no-audit --no-fund && npm run check && npm test

# the explorer's TypeScript types, made from the API
explorer-types:
    uv run python explorer/describe_api.py > explorer/openapi.json
    cd explorer && npm run types -- openapi.json -o src/api.gen.ts && rm openapi.json

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
