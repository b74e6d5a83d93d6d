/** The item under the cursor, beside the list. */
import type { Api } from "../api";
import { words } from "../format";
import { useQuery } from "../query";
import { paths, itemPath } from "../router";
import { Kind, Strength } from "./Kind";
import { Link } from "./Link";
import { Markup } from "./Markup";
import { Skeleton } from "./states";
import { Time } from "./Time";

export type Previewed = {
  id: string;
  type: string;
  session_id?: string;
  text?: string;
  why?: string;
  signals?: Api<"Signal">[];
};

export function Preview({ item, marks }: { item: Previewed; marks: string[] }) {
  const reading = useQuery<Api<"Reading">>(
    item.type === "fragment" ? { path: `/fragments/${encodeURIComponent(item.id)}` } : null,
  );
  const fragment = reading.data?.id === item.id ? reading.data.fragment : undefined;
  return (
    <aside className="preview" aria-label="Preview">
      {item.type !== "fragment" ? (
        <Markup text={item.text ?? ""} marks={marks} />
      ) : fragment ? (
        <FragmentPreview reading={reading.data as Api<"Reading">} fragment={fragment} marks={marks} />
      ) : (
        <Skeleton rows={4} />
      )}
      {item.signals && item.signals.length > 0 && <Signals signals={item.signals} />}
      <p>
        <Link to={itemPath(item)} className="button">
          {item.type === "fragment" ? "Open" : "Show in its session"} <kbd>Enter</kbd>
        </Link>
      </p>
    </aside>
  );
}

function FragmentPreview({
  reading,
  fragment,
  marks,
}: {
  reading: Api<"Reading">;
  fragment: Api<"Fragment">;
  marks: string[];
}) {
  const sources = fragment.source_messages;
  return (
    <>
      <p className="meta">
        <Kind kind={fragment.kind} />
        <Strength value={fragment.relevance} label="Relevance" />
        <Time at={fragment.created_at} />
      </p>
      <Markup text={fragment.content} marks={marks} />
      <dl className="facts">
        {reading.parent && (
          <>
            <dt>Under</dt>
            <dd>
              <Link to={paths.fragment(reading.parent.id)}>{reading.parent.title}</Link>
            </dd>
          </>
        )}
        {reading.children && reading.children.length > 0 && (
          <>
            <dt>Below</dt>
            <dd>{reading.children.length} more detailed</dd>
          </>
        )}
        {sources[0] && (
          <>
            <dt>Source</dt>
            <dd>
              <Link to={paths.message(sources[0])}>
                {sources.length === 1 ? "The message that says it" : `${sources.length} messages`}
              </Link>
            </dd>
          </>
        )}
        <dt>Version</dt>
        <dd>{fragment.version}</dd>
      </dl>
    </>
  );
}

/** What the signals of a score are called; the others by their own names. */
const SIGNALS: Record<string, string> = {
  keyword: "keywords",
  keyword_z: "keywords, against other hits",
  cosine: "meaning",
  cosine_z: "meaning, against other hits",
  cosine_rank: "rank by meaning",
  long_rank: "rank in long texts",
  cosine_top: "meaning of its best passage",
  cosine_before: "meaning of the message before",
  cosine_beside: "meaning of its neighbours",
  session_cosine: "meaning of its session",
  session_best: "best of its session",
  covered: "words of the question",
  covered_close: "words close together",
  covered_near: "words in its neighbours",
  covered_before: "words in the message before",
  covered_after: "words in the message after",
  pairs: "pairs of words",
  exact: "the exact phrase",
  standing: "a standing instruction",
  answers: "answers a question",
  user: "said by a person",
  tool: "output of a tool",
  late: "how late it was said",
  interaction: "signals together",
  policy: "holds now, or was asked for",
};

/** The numbers behind a score, the largest first. */
function Signals({ signals }: { signals: Api<"Signal">[] }) {
  const shown = [...signals].sort((a, b) => Math.abs(b.contribution) - Math.abs(a.contribution)).slice(0, 6);
  const most = Math.max(...shown.map((one) => Math.abs(one.contribution)), 1e-9);
  return (
    <section aria-label="Why it was found">
      <h2 className="preview-title">Why it was found</h2>
      <ul className="signals">
        {shown.map((one) => (
          <li key={one.name}>
            <span>{SIGNALS[one.name] ?? words(one.name)}</span>
            <span className="signal-bar" data-sign={one.contribution < 0 ? "minus" : "plus"}>
              <i style={{ width: `${(Math.abs(one.contribution) / most) * 100}%` }} />
            </span>
            <span className="row-end">
              {one.contribution >= 0 ? "+" : "−"}
              {Math.abs(one.contribution).toFixed(2)}
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}
