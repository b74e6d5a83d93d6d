from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore.http.request_limits import Limits
from lore.recall.graph_layout import layout
from lore.records import RequestCost, TokenUse
from lore.tasks import continuity_page
from lore.tasks.continuity_page import ContinuityPage
from tests.http_api.browser import Browser, log_in
from tests.http_api.live_server import Served, serving
from tests.waiting import eventually


@pytest.fixture
def served(tmp_path) -> Iterator[Served]:
    with serving(tmp_path, limits=Limits(requests_per_minute=0)) as running:
        yield running


@pytest.fixture
def browser(served: Served) -> Browser:
    return log_in(served)


def read(served: Served, path: str) -> Any:
    reply = served.get(f"/api/v1{path}")
    assert reply.status == 200, reply.body
    return reply.json


def walk(served: Served, path: str, limit: int) -> list[Any]:
    items: list[Any] = []
    cursor: Any = ""
    while cursor is not None:
        page = read(served, f"{path}limit={limit}&cursor={cursor}")
        items += page["items"]
        cursor = page["next"]
    return items


def test_what_happened_to_knowledge_is_listed_newest_first(served: Served, browser: Browser):
    one, two, three = (served.memory.store(f"Fact {n}") for n in range(3))
    browser.post(f"/fragments/{one}/update", content="Fact 0, changed")
    browser.post(f"/fragments/{two}/supersede", by=three)
    browser.post(f"/fragments/{three}/delete")
    events = walk(served, "/learned?", 100)
    assert [(e["verb"], e["id"]) for e in events[-3:]] == [
        ("learned", three), ("learned", two), ("learned", one),
    ]  # fmt: skip
    assert ("changed", one) in [(e["verb"], e["id"]) for e in events]
    assert ("deleted", three) in [(e["verb"], e["id"]) for e in events]
    for limit in (1, 2, 3):
        assert walk(served, "/learned?", limit) == events
    (day,) = read(served, "/learned/days")
    assert (day["learned"], day["changed"], day["deleted"]) == (3, 1, 1)


def test_what_was_replaced_names_its_successor(served: Served, browser: Browser):
    older, newer = served.memory.store("Old"), served.memory.store("New")
    browser.post(f"/fragments/{older}/supersede", by=newer)
    (event,) = [e for e in walk(served, "/learned?", 10) if e["verb"] == "replaced"]
    assert (event["id"], event["by_id"], event["by"]) == (older, newer, "New")


def test_what_was_learned_is_limited_to_a_project_and_a_time(served: Served):
    mine = served.memory.store("Mine", project="/code/p")
    served.memory.store("Theirs", project="/code/q")
    assert [e["id"] for e in walk(served, "/learned?project=/code/p&", 10)] == [mine]
    assert walk(served, "/learned?since=2100-01-01&", 10) == []
    assert served.get("/api/v1/learned?since=whenever").status == 422
    assert served.get("/api/v1/learned?project=/nowhere").status == 404


def test_cycles_are_paged_with_their_reports(served: Served):
    reports = [served.memory.digest.consolidate(phases=["prune_edges"]) for _ in range(3)]
    listed = walk(served, "/cycles?", 2)
    assert [one["id"] for one in listed] == [one.id for one in reports[::-1]]
    assert listed[0]["phases"][0]["phase"] == "prune_edges"


def test_the_graph_holds_trees_with_positions(served: Served):
    memory = served.memory
    root = memory.store("Root", project="/code/p")
    children = [memory.store(f"Child {n}", project="/code/p", parent_id=root) for n in range(3)]
    alone = memory.store("Alone", project="/code/q")
    graph = read(served, "/graph")
    by_id = {one["id"]: one for one in graph["nodes"]}
    assert set(by_id) == {root, alone, *children}
    assert all(-1 <= one[axis] <= 1 for one in graph["nodes"] for axis in "xy")
    assert len({(one["x"], one["y"]) for one in graph["nodes"]}) == 5
    assert {graph["nodes"][one["source"]]["id"] for one in graph["edges"]} == {root}
    assert by_id[root]["degree"] == 3
    assert graph == read(served, "/graph")
    assert {one["id"] for one in read(served, "/graph?project=/code/p")["nodes"]} == {
        root, *children,
    }  # fmt: skip
    around = read(served, f"/graph?focus={children[0]}")
    assert around["focus"] == children[0]
    assert {one["id"] for one in around["nodes"]} == {root, *children}
    assert len(read(served, "/graph?limit=2")["nodes"]) == 2
    assert read(served, "/graph?at=2020-01-01")["nodes"] == []
    assert served.get("/api/v1/graph?limit=1001").status == 422
    assert served.get("/api/v1/graph?focus=0123abcd").status == 404


def test_a_replaced_node_says_when(served: Served, browser: Browser):
    older, newer = served.memory.store("Old"), served.memory.store("New")
    browser.post(f"/fragments/{older}/supersede", by=newer)
    by_id = {one["id"]: one for one in read(served, "/graph")["nodes"]}
    assert by_id[older]["replaced_at"] > by_id[older]["created_at"]
    assert by_id[newer]["replaced_at"] is None


def test_a_graph_without_anything_is_empty(served: Served):
    assert read(served, "/graph") == {"nodes": [], "edges": [], "total": 0, "focus": ""}
    assert read(served, "/learned")["items"] == []
    assert read(served, "/learned/days") == []
    assert read(served, "/cycles")["items"] == []


@given(
    st.integers(0, 30).flatmap(
        lambda count: st.tuples(
            st.just(count),
            st.lists(
                st.tuples(st.integers(0, max(0, count - 1)), st.integers(0, max(0, count - 1))),
                max_size=40 if count else 0,
            ),
        )
    )
)
def test_every_graph_has_a_layout(graph: tuple[int, list[tuple[int, int]]]):
    count, edges = graph
    positions = layout(count, tuple(edges))
    assert len(positions) == count
    assert all(-1 <= x <= 1 and -1 <= y <= 1 for x, y in positions)
    layout.cache_clear()
    assert layout(count, tuple(edges)) == positions


def test_neighbours_are_nearer_than_strangers():
    # Two stars of ten, joined by nothing.
    edges = tuple((0, n) for n in range(1, 10)) + tuple((10, n) for n in range(11, 20))
    positions = layout(20, edges)

    def apart(a: int, b: int) -> float:
        (ax, ay), (bx, by) = positions[a], positions[b]
        return float(((ax - bx) ** 2 + (ay - by) ** 2) ** 0.5)

    own = max(apart(0, n) for n in range(1, 10))
    assert own < min(apart(0, n) for n in range(11, 20))


def test_spend_is_added_up_over_time(served: Served):
    memory = served.memory
    for model in ("model-a", "model-b", "model-b"):
        hold = memory.budget.reserve_request(RequestCost(model, TokenUse(1_000, output_tokens=10)))
        memory.budget.settle_request(hold, TokenUse(250, 750, output_tokens=10))

    def series() -> Any:
        one = read(served, "/spend/series?group=model")
        return one if one["total"]["requests"] == 3 else None

    shown = eventually(series)
    assert {one["group"]: one["requests"] for one in shown["points"]} == {
        "model-a": 1, "model-b": 2,
    }  # fmt: skip
    assert {one["cache_hit_rate"] for one in shown["points"]} == {0.75}
    assert {one["name"] for one in shown["groups"]} == {"model-a", "model-b"}
    assert shown["total"]["tokens"]["fresh_tokens"] == 750
    assert shown["pressure"] is None
    assert shown["economics"]["sessions"] == 0
    hourly = read(served, "/spend/series?by=hour")
    assert sum(one["requests"] for one in hourly["points"]) == 3
    later = (memory.database.now() + timedelta(days=1)).date()
    assert read(served, f"/spend/series?since={later}")["points"] == []
    assert served.get("/api/v1/spend/series?by=week").status == 422
    assert served.get("/api/v1/spend/series?since=whenever").status == 422


def test_the_series_of_a_project_leaves_others_out(served: Served):
    served.memory.store("x", project="/code/p")
    assert read(served, "/spend/series?project=/code/p&group=project")["points"] == []
    assert served.get("/api/v1/spend/series?project=/nowhere").status == 404


def test_tasks_are_paged_and_shown_with_their_memories(served: Served):
    known = served.memory.store("The port is 8080", project="/code/p")
    for n in range(3):
        served.memory.tasks.start(f"Change port {n}", project="/code/p", name=f"t{n}")
    listed = walk(served, "/tasks?project=/code/p&", 2)
    assert [one["goal"] for one in listed] == [f"Change port {n}" for n in (2, 1, 0)]
    assert walk(served, "/tasks?state=done&", 2) == []
    details = read(served, f"/tasks/{listed[0]['id']}")
    assert details["task"] == listed[0]
    assert {one["item_id"] for one in details["memories"]} <= {known}
    assert set(details["titles"]) == {one["item_id"] for one in details["memories"]}
    assert served.get("/api/v1/tasks/0123abcd").status == 404
    assert served.get("/api/v1/tasks?state=lost").status == 422


def test_continuity_is_shown_and_not_written(served: Served, tmp_path):
    folder = tmp_path / "repository"
    folder.mkdir()
    served.memory.store("x", project=str(folder))
    page = read(served, f"/continuity?project={folder}")
    assert (page["text"], page["is_written"]) == ("", False)
    assert list(folder.iterdir()) == []
    (folder / "CONTINUITY.md").write_text("# Continuity\n\nMine\n")
    assert served.get(f"/api/v1/continuity?project={folder}").status == 200
    assert served.get("/api/v1/continuity?project=/etc").status == 404
    assert served.get("/api/v1/continuity").status == 422


def test_the_page_of_a_folder_is_redacted_and_not_read_for_a_key(served: Served, tmp_path):
    token = "ghp_" + "a1B2c3D4e5F6" * 3
    served.memory.store("x", project=str(tmp_path))
    page = continuity_page.render_page(ContinuityPage({"task": ("Deploy",)}))
    (tmp_path / "CONTINUITY.md").write_text(f"{page}\n- The token is {token}\n")
    shown = read(served, f"/continuity?project={tmp_path}")
    assert shown["is_written"]
    assert token not in shown["text"]
    key, _ = served.memory.access.create_key("reader", scopes=["read"])
    for_key = served.get(
        f"/api/v1/continuity?project={tmp_path}", authorization=f"Bearer {key}"
    ).json
    assert (for_key["text"], for_key["is_written"]) == ("", False)


def test_strategies_are_shown_with_their_figures(served: Served):
    shown = read(served, "/strategies")
    assert shown["mode"] == "fixed"
    assert shown["profile"] in shown["descriptions"]
    assert served.get("/api/v1/strategies?since=whenever").status == 422


def test_the_health_report_lists_checks(served: Served):
    report = read(served, "/health/report")
    assert report["read_only"] is False
    assert {"versions", "home", "database", "jobs"} <= {one["name"] for one in report["checks"]}
    full = read(served, "/health/report?full=true")
    assert {"keywords", "vectors"} <= {one["name"] for one in full["checks"]}
    assert {one["name"] for one in report["indexes"]} == {"keywords", "vectors", "replacements"}


def test_forgetting_needs_the_preview_of_the_same_things(served: Served, browser: Browser):
    id_ = served.memory.store("The secret plan")
    preview = browser.post("/forget/preview", match="secret plan")
    assert preview["counts"] == {"fragment": 1}
    assert [one["id"] for one in preview["items"]] == [id_]
    served.memory.store("Another secret plan")
    refused = browser.send("/forget", {"match": "secret plan", "digest": preview["digest"]})
    assert refused.status == 422
    assert browser.send("/forget", {"match": "secret plan"}).status == 422
    digest = browser.post("/forget/preview", match="secret plan")["digest"]
    assert browser.send("/forget", {"id": id_, "digest": digest}).status == 422
    assert browser.post("/forget", match="secret plan", digest=digest)["deleted"] == 2
    assert served.get(f"/api/v1/fragments/{id_}").status == 404
    assert browser.send("/forget/preview", {}).status == 422


def test_forgetting_needs_an_admin(served: Served):
    id_ = served.memory.store("A fact")
    key = served.memory.access.create_key("writer")[0]
    for path in ("/forget/preview", "/forget"):
        tree = {"id": id_, "digest": "x"} if path == "/forget" else {"id": id_}
        refused = served.post(f"/api/v1{path}", tree, authorization=f"Bearer {key}")
        assert refused.status == 403


def test_work_of_all_projects_is_listed_unless_one_is_named(served: Served):
    for project in ("/code/p", "/code/q"):
        served.memory.store("x", project=project)
        served.memory.handoffs.write(
            what_was_done=f"Work in {project}", from_agent="codex", project=project,
            reads_folder=False,
        )  # fmt: skip
        served.memory.handoffs.checkpoint(agent="codex", project=project, reads_folder=False)
    assert len(read(served, "/handoffs")) == len(read(served, "/ledgers")) == 2
    (one,) = read(served, "/handoffs?project=/code/q")
    assert one["what_was_done"] == "Work in /code/q"
    assert len(read(served, "/ledgers?project=/code/q")) == 1
    assert read(served, "/work") == []


def test_a_cited_passage_says_what_it_is(served: Served):
    id_ = served.memory.store("The lighthouse keeper is called Ida")
    reply = served.post("/api/v1/ask", {"query": "What is the lighthouse keeper called?"})
    assert [(one["id"], one["type"]) for one in reply.json["citations"]] == [(id_, "fragment")]
