"""Settings: where values come from, and how the user's file is changed."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore.cli.terminal import wants_colour
from lore.errors import InvalidInput, NotFound
from lore.settings import (
    Settings,
    load,
    resting_threads,
    runs_by_uv,
    write_user_setting,
)


def value_of(home: Path, key: str, environ: dict[str, str] | None = None, **more):
    loaded = load(environ or {}, home=home, **more)
    (found,) = [value for value in loaded.values if value.key == key]
    return found.value, found.source


def write(home: Path, text: str) -> Path:
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text(text)
    return home / "config.toml"


def test_environment_overrides_project_overrides_user_overrides_default(tmp_path: Path):
    key = "recall.max_hits"
    assert value_of(tmp_path, key) == (15, "default")
    write(tmp_path, "[recall]\nmax_hits = 3")
    assert value_of(tmp_path, key) == (3, "config.toml")
    (tmp_path / ".lore.json").write_text('{"recall": {"max_hits": 4}}')
    assert value_of(tmp_path, key, project_dir=tmp_path) == (4, ".lore.json")
    environ = {"LORE_RECALL_MAX_HITS": "5"}
    assert value_of(tmp_path, key, environ, project_dir=tmp_path) == (5, "environment")


def test_a_project_cannot_set_what_reaches_outside_it(tmp_path: Path):
    redaction = ("capture.redact", "capture.redact_patterns", "capture.redact_allow")
    for key in (*redaction, "embed.base_url", "embed.api_key", "db_path", "embed.download", "home"):
        (tmp_path / ".lore.json").write_text(f'{{"{key}": "x"}}')
        loaded = load({}, home=tmp_path / "home", project_dir=tmp_path)
        assert loaded.settings == load({}, home=tmp_path / "home").settings
        assert f"'{key}'" in loaded.warning


@pytest.mark.parametrize(
    "text",
    ["{", "[]", "5", '{"a": ' * 2_000, '{"nonsense": 1}', '{"recall": {"max_hits": []}}'],
)
def test_an_invalid_project_file_is_reported_and_ignored(tmp_path: Path, text: str):
    (tmp_path / ".lore.json").write_text(text)
    loaded = load({}, home=tmp_path / "home", project_dir=tmp_path)
    assert ".lore.json" in loaded.warning
    assert loaded.settings == load({}, home=tmp_path / "home").settings


def test_valid_project_settings_count_beside_invalid_ones(tmp_path: Path):
    (tmp_path / ".lore.json").write_text('{"nonsense": 1, "recall": {"max_hits": 4}}')
    loaded = load({}, home=tmp_path / "home", project_dir=tmp_path)
    assert loaded.settings.recall_max_hits == 4
    assert "'nonsense'" in loaded.warning


def test_a_folder_or_binary_file_is_reported(tmp_path: Path):
    (tmp_path / "config.toml").mkdir()
    with pytest.raises(InvalidInput, match=r"config\.toml"):
        load({}, home=tmp_path)
    (tmp_path / "config.toml").rmdir()
    (tmp_path / "config.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidInput, match="UTF-8"):
        load({}, home=tmp_path)


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("RECALL_MAX_HITS", "0"),
        ("RECALL_MAX_HITS", "1e3"),
        ("EMBED_IDLE_UNLOAD_S", "inf"),
        ("EMBED_DOWNLOAD", "perhaps"),
        ("SEARCH_RECIPE", "cake"),
        ("SEARCH_FTS_WEIGHTS", "1,2"),
        ("EMBED_MODEL", "a\ud800"),
    ],
)
def test_an_invalid_value_is_refused_by_name(tmp_path: Path, name: str, raw: str):
    with pytest.raises(InvalidInput, match=f"LORE_{name}"):
        load({f"LORE_{name}": raw}, home=tmp_path)


def test_a_home_that_cannot_be_found_is_an_error():
    with pytest.raises(NotFound, match="no home folder"):
        load({"LORE_HOME": "~nobody-of-this-name"})
    with pytest.raises(InvalidInput, match="UTF-8"):
        load({"LORE_HOME": "/tmp/\udcff"})


def test_the_database_is_in_the_home_by_default(tmp_path: Path):
    def database(**environ: str) -> Path:
        return load(environ, home=tmp_path).settings.database

    assert database() == tmp_path / "memory.db"
    assert database(LORE_DB_PATH="/var/x.db") == Path("/var/x.db")
    assert database(LORE_DB_PATH="x.db") == Path.cwd() / "x.db"
    write(tmp_path, 'db_path = "other.db"')
    assert database() == tmp_path / "other.db"


def test_every_default_satisfies_its_rule(tmp_path: Path):
    loaded = load({}, home=tmp_path)
    assert loaded.settings == Settings(home=tmp_path)
    assert all(value.doc.endswith(".") for value in loaded.values)


def test_colour_can_be_disabled():
    assert wants_colour({})
    assert wants_colour({"NO_COLOR": ""})
    assert not wants_colour({"NO_COLOR": "1"})
    assert not wants_colour({"TERM": "dumb"})


def test_a_start_by_uv_is_recognised():
    assert runs_by_uv({"UV_RUN_RECURSION_DEPTH": "1"})
    assert not runs_by_uv({"UV": "/code/bin/uv"})


COMMENTED = """\
# My settings: do not touch.

"recall.budget_tokens" = 900  # enough

[embed]
# the small one
model = "all-MiniLM-L6-v2"  # fine
threads = 2

[recall]
max_hits = 5 # few

[search]
recipe = 'rrf'
"""


@pytest.mark.parametrize(
    ("key", "value", "old", "new"),
    [
        ("recall.max_hits", "8", "max_hits = 5 # few", "max_hits = 8 # few"),
        ("embed.model", "x#y", '"all-MiniLM-L6-v2"  # fine', '"x#y"  # fine'),
        ("search.recipe", "learned", "'rrf'", '"learned"'),
        ("embed.threads", "4", "threads = 2", "threads = 4"),
        ("embed.download", "yes", "threads = 2", "threads = 2\ndownload = true"),
        (
            "store.busy_timeout_s",
            "5",
            "900  # enough",
            "900  # enough\nstore.busy_timeout_s = 5.0",
        ),
    ],
)
def test_a_setting_is_changed_in_place(tmp_path: Path, key: str, value: str, old: str, new: str):
    path = write(tmp_path, COMMENTED)
    write_user_setting(tmp_path, key, value)
    assert path.read_text() == COMMENTED.replace(old, new)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# only a comment\n",
        '"recall.max_hits" = 5\n',
        "recall.max_hits = 5",
        "recall . max_hits=5\n",
        "[recall]\nmax_hits = 5\n",
        '[ "recall" ] # here\n  "max_hits" = 5\n',
        "[embed]\nthreads = 2\n",
        "[recall]\n\n[embed]\nthreads = 2\n",
        "embed.threads = 2\r\nrecall.max_hits = 5\r\n",
    ],
)
def test_a_setting_is_never_written_twice(tmp_path: Path, text: str):
    path = write(tmp_path, text)
    write_user_setting(tmp_path, "recall.max_hits", "7")
    write_user_setting(tmp_path, "recall.max_hits", "8")
    assert value_of(tmp_path, "recall.max_hits") == (8, "config.toml")
    assert path.read_text().count("max_hits") == 1
    assert ("threads = 2" in path.read_text()) == ("threads" in text)
    write_user_setting(tmp_path, "recall.max_hits", None)
    assert value_of(tmp_path, "recall.max_hits") == (15, "default")
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "text",
    ["recall = { max_hits = 5 }\n", 'embed.model = """\nrecall.max_hits = 5\n"""\n'],
)
def test_a_multi_line_value_is_left_to_the_user(tmp_path: Path, text: str):
    path = write(tmp_path, text)
    with pytest.raises(InvalidInput, match="max_hits"):
        write_user_setting(tmp_path, "recall.max_hits", "7")
    assert path.read_text() == text


@given(st.text(max_size=60))
def test_any_text_survives_a_round_trip_or_is_refused(
    tmp_path_factory: pytest.TempPathFactory, text: str
):
    home = tmp_path_factory.mktemp("home")
    try:
        write_user_setting(home, "embed.model", text)
    except InvalidInput:
        assert not (home / "config.toml").exists()
    else:
        assert value_of(home, "embed.model")[0] == text


def test_a_list_of_patterns_is_one_text_or_json_or_toml(tmp_path: Path):
    key, env = "capture.redact_patterns", "LORE_CAPTURE_REDACT_PATTERNS"
    assert value_of(tmp_path, key, {env: "[a-z]{9}"})[0] == ("[a-z]{9}",)
    assert value_of(tmp_path, key, {env: '["a", "b"]'})[0] == ("a", "b")
    write_user_setting(tmp_path, key, '["a b", "c"]')
    write_user_setting(tmp_path, key, '["a, b", "d"]')
    assert value_of(tmp_path, key) == (("a, b", "d"), "config.toml")
    write(tmp_path, "[capture]\nredact_patterns = [1]")
    with pytest.raises(InvalidInput, match="a list of texts"):
        load({}, home=tmp_path)


def test_an_unset_budget_is_none_not_zero(tmp_path: Path):
    assert value_of(tmp_path, "daily_budget") == (None, "default")
    assert value_of(tmp_path, "daily_budget", {"LORE_DAILY_BUDGET": "0"}) == (0.0, "environment")
    assert value_of(tmp_path, "daily_budget", {"LORE_DAILY_BUDGET": ""}) == (None, "default")
    for wrong in ("-1", "inf", "much"):
        with pytest.raises(InvalidInput):
            load({"LORE_DAILY_BUDGET": wrong}, home=tmp_path)
    write_user_setting(tmp_path, "daily_budget", "2.5")
    assert value_of(tmp_path, "daily_budget") == (2.5, "config.toml")
    write_user_setting(tmp_path, "daily_budget", None)
    assert value_of(tmp_path, "daily_budget") == (None, "default")


def test_prices_can_be_tables_per_model(tmp_path: Path):
    write(
        tmp_path,
        '[prices."my-model"]\ninput = 3\noutput = 15.5\nwindow = 100000\n'
        '[prices."org/other:8b"]\ninput = 0\noutput = 0\n',
    )
    rows = ("my-model input=3 output=15.5 window=100000", "org/other:8b input=0 output=0")
    assert value_of(tmp_path, "prices") == (rows, "config.toml")


def test_prices_can_be_a_list_of_texts(tmp_path: Path):
    write_user_setting(tmp_path, "prices", "m input=1 output=2")
    assert value_of(tmp_path, "prices") == (("m input=1 output=2",), "config.toml")
    environ = {"LORE_PRICES": '["a input=1", "b output=2"]'}
    assert value_of(tmp_path, "prices", environ)[0] == ("a input=1", "b output=2")


@pytest.mark.parametrize(
    "text",
    [
        '[prices.m]\ninput = "much"',
        "[prices.m]\nimput = 3",
        "[prices.m]\ninput = -3",
        "[prices]\nm = 3",
        'prices = ["m"]',
        "prices = 3",
    ],
)
def test_invalid_prices_are_refused(tmp_path: Path, text: str):
    write(tmp_path, text)
    with pytest.raises(InvalidInput, match="prices"):
        load({}, home=tmp_path)


def test_a_file_with_price_tables_can_be_changed_elsewhere(tmp_path: Path):
    path = write(tmp_path, '[prices."m"]\ninput = 3\n')
    write_user_setting(tmp_path, "recall.max_hits", "3")
    assert value_of(tmp_path, "prices")[0] == ("m input=3",)
    assert value_of(tmp_path, "recall.max_hits")[0] == 3
    with pytest.raises(InvalidInput, match="no single line"):
        write_user_setting(tmp_path, "prices", "m input=4")
    assert "input = 3" in path.read_text()


def test_blas_threads_rest_only_while_numpy_is_loaded():
    environ = {"PATH": "/bin"}
    with resting_threads(environ):
        assert environ["OPENBLAS_THREAD_TIMEOUT"] == "4"
    assert environ == {"PATH": "/bin"}


def test_a_blas_timeout_of_the_user_is_respected():
    environ = {"OPENBLAS_THREAD_TIMEOUT": "26"}
    with resting_threads(environ):
        assert environ["OPENBLAS_THREAD_TIMEOUT"] == "26"
    assert environ == {"OPENBLAS_THREAD_TIMEOUT": "26"}


@pytest.mark.parametrize("by_environment", [True, False])
def test_injection_threshold_of_the_former_scale_gives_way_to_the_default(
    tmp_path: Path, by_environment: bool
):
    if not by_environment:
        (tmp_path / "config.toml").write_text("[inject]\nthreshold = 2.5\n")
    loaded = load({"LORE_INJECT_THRESHOLD": "2.5"} if by_environment else {}, home=tmp_path)
    assert loaded.settings.inject_threshold == Settings().inject_threshold
    assert "2.5" in loaded.warning
    assert "probability" in loaded.warning
    assert load({"LORE_INJECT_THRESHOLD": "0.8"}, home=tmp_path).settings.inject_threshold == 0.8
