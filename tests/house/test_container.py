"""The Dockerfile and the compose file: what a linter would say, without a container engine."""

import json
import re
from typing import Any

import yaml

from lore.settings import load
from tests.house.source import ROOT

DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")
INSTRUCTIONS = re.findall(
    r"^([A-Z]+) (.+)$", re.sub(r"\\\n\s*", "", re.sub(r"(?m)^#.*\n", "", DOCKERFILE)), re.MULTILINE
)
COMPOSE: Any = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))


def values(name: str) -> list[str]:
    return [value for word, value in INSTRUCTIONS if word == name]


def test_every_line_of_the_dockerfile_is_an_instruction():
    known = {"FROM", "RUN", "WORKDIR", "COPY", "USER", "ENV", "VOLUME", "EXPOSE", "STOPSIGNAL",
             "HEALTHCHECK", "ENTRYPOINT", "CMD"}  # fmt: skip
    assert {word for word, _ in INSTRUCTIONS} <= known
    plain = re.sub(r"\\\n\s*", "", re.sub(r"(?m)^(#.*)?\n", "", DOCKERFILE))
    assert len(plain.splitlines()) == len(INSTRUCTIONS)


def test_images_and_packages_have_versions():
    for image in values("FROM"):
        assert re.match(r"\w+:[\w.-]+\b", image)
        assert ":latest" not in image
    installs = " ".join(values("RUN"))
    assert "pip install --no-cache-dir uv==" in installs
    assert "--constraint /wheels/requirements.lock" in installs


def test_the_server_is_no_root_and_stops_gently():
    assert values("USER") == ["10001"]
    names = [word for word, _ in INSTRUCTIONS]
    assert names.index("USER") < names.index("CMD")
    assert values("STOPSIGNAL") == ["SIGTERM"]
    assert len(values("HEALTHCHECK")) == 1


def test_commands_are_lists_so_that_signals_arrive():
    for name in ("ENTRYPOINT", "CMD"):
        (value,) = values(name)
        assert isinstance(json.loads(value), list)
    (check,) = values("HEALTHCHECK")
    assert json.loads(check.partition("CMD ")[2])


def test_no_secret_is_in_the_image():
    assert not re.search(r"(?i)(key|token|password|secret)\s*=", " ".join(values("ENV")))
    ignored = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    assert {".git", ".venv"} <= set(ignored)


def test_the_port_is_that_of_the_settings():
    port = str(load({}).settings.server_port)
    assert values("EXPOSE") == [port]
    assert port in values("CMD")[0]
    assert COMPOSE["services"]["lore"]["ports"] == [f"127.0.0.1:{port}:{port}"]


def test_the_compose_file_gives_the_server_its_data_and_nothing_else():
    server = COMPOSE["services"]["lore"]
    assert server["command"][0] == "serve"
    assert server["read_only"]
    assert server["cap_drop"] == ["ALL"]
    assert server["volumes"] == ["data:/data"]
    assert set(COMPOSE["volumes"]) == {"data", "database"}
    assert "privileged" not in server
    assert set(server["environment"]) == {"LORE_STORE_URL"}


def test_the_compose_file_has_a_database_that_only_the_server_reaches():
    server, database = (COMPOSE["services"][name] for name in ("lore", "database"))
    assert re.fullmatch(r"pgvector/pgvector:[\d.]+-pg\d+", database["image"])
    assert "ports" not in database
    assert server["depends_on"]["database"]["condition"] == "service_healthy"
    password = database["environment"]["POSTGRES_PASSWORD"]
    assert re.fullmatch(r"\$\{\w+:\?[^}]+\}", password)  # no default: the file ends without one
    own = {"user": database["environment"]["POSTGRES_USER"], "password": password,
           "host": "database", "dbname": database["environment"]["POSTGRES_DB"]}  # fmt: skip
    url = "postgresql://{user}:{password}@{host}/{dbname}".format(**own)
    assert server["environment"]["LORE_STORE_URL"] == url
    assert "[server,postgres,qdrant,telemetry]" in " ".join(values("RUN"))
