/** Graph: knowledge as it hangs together, at any time. */
import { useMemo, useRef, useState } from "react";
import type { Api } from "../api";
import { formatCount, formatDay, plural } from "../format";
import { presenceAt, spread, timeSpan, type Presence } from "../graph";
import { useRowKeys } from "../keys";
import { plainLine } from "../markup";
import { projectName, useProjects } from "../me";
import { Choice, Segments } from "../parts/Chips";
import { GraphCanvas } from "../parts/GraphCanvas";
import { Kind, Strength } from "../parts/Kind";
import { Link } from "../parts/Link";
import { Preview } from "../parts/Preview";
import { Empty, FailureNote, Skeleton } from "../parts/states";
import { useQuery } from "../query";
import { navigate, paths, useParameters } from "../router";
import "../styles/graph.css";
import { useTitle } from "../title";

type KnowledgeGraph = Api<"KnowledgeGraph">;

const COLOURS = [
  ["", "Relevance"],
  ["kind", "Kind"],
] as const;
const STEPS = 1000;

export default function Graph() {
  useTitle("Graph");
  const [values, change] = useParameters();
  const projects = useProjects();
  const project = values.get("project") ?? "";
  const graph = useQuery<KnowledgeGraph>({
    path: "/graph",
    query: { project, focus: values.get("focus") ?? "", limit: 1000 },
  });
  return (
    <div className="graph-page">
      <header className="page-head">
        <h1>Graph</h1>
        {graph.data && (
          <p>
            {plural(graph.data.nodes.length, "fragment")}
            {graph.data.total > graph.data.nodes.length && ` of ${formatCount(graph.data.total)}`},{" "}
            {plural(graph.data.edges.length, "connection")}
          </p>
        )}
        <span className="push chips">
          <Segments
            label="Colour"
            value={values.get("colour") ?? ""}
            options={COLOURS}
            change={(colour) => change({ colour })}
          />
          <Choice
            label="Project"
            value={project}
            options={projects.map((one) => [one.id, projectName(projects, one.id)] as const)}
            change={(chosen) => change({ project: chosen, focus: undefined })}
          />
          {values.get("focus") && (
            <button type="button" className="button plain" onClick={() => change({ focus: undefined })}>
              Show all
            </button>
          )}
        </span>
      </header>
      {graph.error && <FailureNote failure={graph.error} retry={graph.reload} />}
      {!graph.data && !graph.error && <Skeleton rows={8} tall />}
      {graph.data &&
        (graph.data.nodes.length ? (
          <GraphView loaded={graph.data} />
        ) : (
          <Empty title="There is no knowledge to draw yet.">
            <p>Fragments appear here as sessions are digested.</p>
          </Empty>
        ))}
    </div>
  );
}

function GraphView({ loaded }: { loaded: KnowledgeGraph }) {
  const graph = useMemo(() => ({ ...loaded, nodes: spread(loaded.nodes) }), [loaded]);
  const [values, change] = useParameters();
  const [first, last] = useMemo(() => timeSpan(graph.nodes), [graph]);
  const at = values.get("at") ? Date.parse(values.get("at") ?? "") : last;
  const presence = useMemo<Presence[]>(() => graph.nodes.map((node) => presenceAt(node, at)), [graph, at]);
  const focus = graph.nodes.findIndex((node) => node.id === (values.get("focus") ?? graph.focus));
  const [chosenId, setChosen] = useState(focus >= 0 ? graph.nodes[focus]?.id : undefined);
  const chosen = graph.nodes.findIndex((node) => node.id === chosenId);
  const known = presence.filter((one) => one !== "absent").length;
  const node = graph.nodes[chosen];
  return (
    <div className="graph-frame">
      <div className="graph-main">
        <GraphCanvas
          graph={graph}
          presence={presence}
          colour={values.get("colour") === "kind" ? "kind" : "relevance"}
          chosen={chosen}
          choose={(place) => setChosen(graph.nodes[place]?.id)}
          open={(place) => navigate(paths.fragment(graph.nodes[place]?.id ?? ""))}
        />
        <label className="graph-time">
          <span>{formatDay(new Date(first).toISOString())}</span>
          <input
            type="range"
            min={0}
            max={STEPS}
            value={Math.round(((at - first) / Math.max(last - first, 1)) * STEPS)}
            aria-label="Time"
            aria-valuetext={formatDay(new Date(at).toISOString())}
            onChange={(event) => {
              const step = Number(event.target.value);
              change({
                at:
                  step >= STEPS ? undefined : new Date(first + ((last - first) * step) / STEPS).toISOString(),
              });
            }}
          />
          <span>{at >= last ? "now" : formatDay(new Date(at).toISOString())}</span>
          <span className="quiet graph-known">{formatCount(known)} known</span>
        </label>
        <Legend graph={graph} presence={presence} byKind={values.get("colour") === "kind"} />
      </div>
      <aside className="graph-side" aria-label="Fragments">
        {node ? (
          <>
            <button type="button" className="button plain" onClick={() => setChosen(undefined)}>
              ← All fragments
            </button>
            <Preview item={{ id: node.id, type: "fragment" }} marks={[]} />
          </>
        ) : (
          <NodeList graph={graph} presence={presence} choose={setChosen} />
        )}
      </aside>
    </div>
  );
}

type LegendProperties = { graph: KnowledgeGraph; presence: Presence[]; byKind: boolean };

/** What colours, sizes and lines mean. */
function Legend({ graph, presence, byKind }: LegendProperties) {
  const kinds = [...new Set(graph.nodes.map((one) => one.kind))].sort();
  const lines = new Set(graph.edges.map((one) => (one.kind === "hierarchical" ? "tree" : "related")));
  return (
    <p className="legend graph-legend">
      {byKind ? (
        kinds.map((one) => <Kind key={one} kind={one} />)
      ) : (
        <>
          <span className="relevance-scale">
            faded <i /> relevant
          </span>
          <span>larger: important, well connected</span>
        </>
      )}
      {presence.includes("replaced") && <span data-line="replaced">replaced</span>}
      {lines.has("tree") && <span data-line="tree">belongs under</span>}
      {lines.has("related") && <span data-line="related">related</span>}
    </p>
  );
}

/** Rows of the list; the filter finds the others. */
const MOST_ROWS = 200;

function NodeList({
  graph,
  presence,
  choose,
}: {
  graph: KnowledgeGraph;
  presence: Presence[];
  choose: (id: string) => void;
}) {
  const [filter, setFilter] = useState("");
  const list = useRef<HTMLUListElement>(null);
  useRowKeys(list);
  const wanted = filter.toLowerCase();
  const found = graph.nodes
    .filter((node, at) => presence[at] !== "absent" && node.title.toLowerCase().includes(wanted))
    .sort((a, b) => b.relevance - a.relevance)
    .slice(0, MOST_ROWS);
  return (
    <>
      <input
        data-search=""
        className="field"
        type="search"
        aria-label="Find in the graph"
        placeholder="Find in the graph"
        value={filter}
        onChange={(event) => setFilter(event.target.value)}
      />
      <ul ref={list} className="rows graph-list">
        {found.map((node) => (
          <li key={node.id}>
            <Link
              row
              to={paths.fragment(node.id)}
              className="row"
              onClick={(event) => {
                event.preventDefault();
                choose(node.id);
              }}
            >
              <Kind kind={node.kind} />
              <span className="row-title">{plainLine(node.title)}</span>
              <Strength value={node.relevance} label="Relevance" />
            </Link>
          </li>
        ))}
      </ul>
    </>
  );
}
