/** What the memory holds and learned last, when nothing is asked. */
import { useRef, useState } from "react";
import type { Api } from "../api";
import { formatCount, plural } from "../format";
import { useRowKeys } from "../keys";
import { plainLine } from "../markup";
import { projectName, useProjects } from "../me";
import { usePages, useQuery, type Pages } from "../query";
import { paths } from "../router";
import { Kind } from "./Kind";
import { Link } from "./Link";
import { More } from "./More";
import { Preview } from "./Preview";
import { Command, Empty, FailureNote, Skeleton } from "./states";
import { Time } from "./Time";

const FIGURES = [
  ["fragments", "fragments"],
  ["sessions", "sessions"],
  ["messages", "messages"],
  ["standing", "standing instructions"],
] as const;

export function Overview({ values }: { values: URLSearchParams }) {
  const stats = useQuery<Api<"Stats">>({ path: "/stats" });
  const projects = useProjects();
  const kind = values.get("kind") ?? "";
  const list = useRef<HTMLUListElement>(null);
  const [focus, setFocus] = useState("");
  const recent = useRecent(values, kind === "message" || kind === "distillation" ? "" : kind);
  useRowKeys(list);
  if (recent.error) return <FailureNote failure={recent.error} />;
  if (stats.data && !stats.data.messages && !stats.data.fragments) return <FirstSteps />;
  const shown = recent.items.find((one) => one.id === focus) ?? recent.items[0];
  return (
    <>
      <dl className="figures overview-figures">
        {FIGURES.map(([name, label]) => (
          <div key={name}>
            <dt>{label}</dt>
            <dd>{stats.data ? formatCount(stats.data[name]) : "–"}</dd>
          </div>
        ))}
      </dl>
      {stats.data?.notice && <p className="notice">{stats.data.notice}</p>}
      <div className="results-columns">
        <section className="results" aria-label="Learned last">
          <div className="section-head">
            <h2>Learned last</h2>
            {stats.data && stats.data.waiting > 0 && (
              <p>{plural(stats.data.waiting, "item")} not indexed by meaning yet</p>
            )}
          </div>
          {!recent.items.length &&
            (recent.loading ? (
              <Skeleton />
            ) : (
              <Empty title="No fragment is like this.">
                <p>Change the filters above.</p>
              </Empty>
            ))}
          <ul ref={list} className="rows">
            {recent.items.map((one) => (
              <li key={one.id}>
                <Link
                  row
                  to={paths.fragment(one.id)}
                  className="row"
                  onFocus={() => setFocus(one.id)}
                  data-active={shown?.id === one.id || undefined}
                >
                  <span className="row-kind">
                    <Kind kind={one.kind} />
                  </span>
                  <span className="row-title">{plainLine(one.title)}</span>
                  {one.verb !== "learned" && <span className="tag">{one.verb}</span>}
                  <span className="row-end row-project">{projectName(projects, one.project_id)}</span>
                  <span className="row-end">
                    <Time at={one.at} />
                  </span>
                </Link>
              </li>
            ))}
          </ul>
          <More more={recent.more} loading={recent.loading && recent.items.length > 0} />
        </section>
        {shown && <Preview item={{ id: shown.id, type: "fragment" }} marks={[]} />}
      </div>
    </>
  );
}

type Recent = {
  id: string;
  title: string;
  kind: string;
  at: string;
  verb: string;
  project_id: string | null;
};

/** Return what was learned or changed last; only the list of fragments knows kinds and origins. */
function useRecent(values: URLSearchParams, kind: string): Pages<Recent> {
  const origin = values.get("origin") ?? "";
  const query = { limit: 50, project: values.get("project") ?? "" };
  const isFiltered = Boolean(kind || origin);
  const learned = usePages<Api<"LearnedEntry">>(
    isFiltered ? null : { path: "/learned", query },
    (one) => one.id,
  );
  const fragments = usePages<Api<"Fragment">>(
    isFiltered ? { path: "/fragments", query: { ...query, kind, origin } } : null,
    (one) => one.id,
  );
  if (!isFiltered) return learned;
  const items = fragments.items.map((one) => ({
    id: one.id,
    title: one.summary || one.content,
    kind: one.kind,
    at: one.created_at,
    verb: "learned",
    project_id: one.project_id,
  }));
  return { ...fragments, items };
}

function FirstSteps() {
  return (
    <Empty title="This memory is empty.">
      <p>Give your agents memory, and take in what they have done so far:</p>
      <Command>lore setup</Command>
      <Command>lore capture --all</Command>
      <p>
        Or look at an example: <code>lore demo --keep FOLDER</code>
      </p>
    </Empty>
  );
}
