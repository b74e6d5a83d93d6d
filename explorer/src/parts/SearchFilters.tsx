/** What a search is limited to. */
import { words } from "../format";
import { projectName, useProjects } from "../me";
import { useQuery } from "../query";
import type { Api } from "../api";
import { Choice, Segments, type Option } from "./Chips";
import { Icon } from "./Icon";
import type { Parameters } from "../router";

export const FRAGMENT_KINDS = [
  "fact",
  "decision",
  "preference",
  "pattern",
  "anti_pattern",
  "architecture",
  "config",
  "workflow",
  "bug_fix",
  "skill",
  "episode",
  "insight",
] as const;
const KINDS: Option[] = [
  ...FRAGMENT_KINDS.map((kind) => [kind, words(kind)] as const),
  ["message", "messages"],
  ["distillation", "logs"],
];
const ORIGINS: Option[] = [
  ["user", "person"],
  ["assistant", "assistant"],
  ["tool", "tool output"],
  ["web", "web page"],
  ["repo", "repository"],
  ["peer", "peer"],
];
const TIMES: Option[] = [
  ["1 day ago", "last day"],
  ["1 week ago", "last week"],
  ["1 month ago", "last month"],
  ["1 year ago", "last year"],
];
const DEPTHS: Option[] = [
  ["", "All"],
  ["0", "Broad"],
  ["1", "Concepts"],
  ["2", "Facts"],
  ["3", "Detail"],
];

export const FILTERS = ["kind", "project", "agent", "since", "origin", "depth", "under"] as const;

type Properties = { values: URLSearchParams; change: (changes: Parameters) => void };

export function SearchFilters({ values, change }: Properties) {
  const projects = useProjects();
  const sessions =
    useQuery<{ items: Api<"Session">[] }>({ path: "/sessions", query: { limit: 100 } }).data?.items ?? [];
  const agents = [...new Set(sessions.map((one) => one.agent).filter(Boolean))].sort();
  const under = values.get("under") ?? "";
  const isFiltered = FILTERS.some((name) => values.get(name));
  const value = (name: string) => values.get(name) ?? "";
  return (
    <div className="chips" role="group" aria-label="Filters">
      <Segments label="Depth" value={value("depth")} options={DEPTHS} change={(depth) => change({ depth })} />
      <Choice label="Kind" value={value("kind")} options={KINDS} change={(kind) => change({ kind })} />
      <Choice
        label="Project"
        value={value("project")}
        options={projects.map((one) => [one.id, projectName(projects, one.id)] as const)}
        change={(project) => change({ project })}
      />
      {agents.length > 1 && (
        <Choice
          label="Agent"
          value={value("agent")}
          options={agents.map((one) => [one, one] as const)}
          change={(agent) => change({ agent })}
        />
      )}
      <Choice label="Time" value={value("since")} options={TIMES} change={(since) => change({ since })} />
      <Choice
        label="Origin"
        value={value("origin")}
        options={ORIGINS}
        change={(origin) => change({ origin })}
      />
      {under && <UnderChip id={under} clear={() => change({ under: undefined })} />}
      {isFiltered && (
        <button
          type="button"
          className="button plain"
          onClick={() => change(Object.fromEntries(FILTERS.map((name) => [name, undefined])))}
        >
          Clear
        </button>
      )}
    </div>
  );
}

function UnderChip({ id, clear }: { id: string; clear: () => void }) {
  const title = useQuery<Api<"Reading">>({ path: `/fragments/${encodeURIComponent(id)}` }).data?.title ?? id;
  return (
    <button
      type="button"
      className="chip"
      data-on=""
      onClick={clear}
      aria-label={`Within ${title}: remove this filter`}
    >
      Within “{title.length > 32 ? `${title.slice(0, 32)}…` : title}” <Icon name="close" />
    </button>
  );
}
