/** The exact messages that a fragment was derived from, with the passage that says it. */
import type { Api } from "../api";
import { usePages } from "../query";
import { paths } from "../router";
import { Link } from "./Link";
import { More } from "./More";
import { FailureNote, Skeleton } from "./states";
import { Time } from "./Time";

type Source = Api<"SourceMessage">;

export function FragmentSources({ id }: { id: string }) {
  const sources = usePages<Source>(
    { path: `/fragments/${encodeURIComponent(id)}/sources`, query: { limit: 20 } },
    (one) => one.id,
  );
  return (
    <section className="section" aria-labelledby="sources">
      <div className="section-head">
        <h2 id="sources">Sources</h2>
        <p>the words it was learned from</p>
      </div>
      {sources.error && <FailureNote failure={sources.error} />}
      {!sources.items.length &&
        (sources.loading ? (
          <Skeleton rows={3} />
        ) : (
          <p className="quiet">It was stored directly, not derived from a conversation.</p>
        ))}
      <ol className="sources">
        {sources.items.map((source) => (
          <li key={source.id} className="source">
            <p className="meta">
              <strong>{source.speaker || source.role}</strong>
              <Link to={paths.session(source.session_id)}>{source.session || source.agent}</Link>
              <Time at={source.at} />
            </p>
            <blockquote dir="auto">
              {source.before}
              {source.quote && <mark>{source.quote}</mark>}
              {source.after}
              {source.is_cut && "…"}
            </blockquote>
            <p>
              <Link to={paths.message(source.id)}>Show in its session</Link>
            </p>
          </li>
        ))}
      </ol>
      <More more={sources.more} loading={sources.loading && sources.items.length > 0} />
    </section>
  );
}
