/** Episodes: what a session set out to do, and what came of it. */
import { useRef } from "react";
import type { Api } from "../api";
import { formatDuration, plural } from "../format";
import { useRowKeys } from "../keys";
import { usePages } from "../query";
import { paths } from "../router";
import { Link } from "./Link";
import { More } from "./More";
import { Empty, FailureNote, Skeleton } from "./states";
import { Time } from "./Time";

const TONES: Record<string, string> = { success: "good", failure: "bad", partial: "warn", unknown: "" };

export function Outcome({ outcome }: { outcome: string }) {
  return (
    <span className="tag outcome" data-tone={TONES[outcome]}>
      {outcome}
    </span>
  );
}

export function Episodes({ project }: { project: string }) {
  const list = useRef<HTMLUListElement>(null);
  const episodes = usePages<Api<"StoredEpisode">>(
    { path: "/episodes", query: { project, limit: 50 } },
    (one) => one.fragment.id,
  );
  useRowKeys(list);
  if (episodes.error) return <FailureNote failure={episodes.error} />;
  if (!episodes.items.length)
    return episodes.loading ? (
      <Skeleton rows={8} />
    ) : (
      <Empty title="No episode has been recorded yet.">
        <p>Each session that did something becomes one when it ends.</p>
      </Empty>
    );
  return (
    <>
      <ul ref={list} className="rows">
        {episodes.items.map(({ fragment, episode, at }) => (
          <li key={fragment.id}>
            <Link row to={paths.fragment(fragment.id)} className="row episode">
              <Outcome outcome={episode.outcome} />
              <span className="row-title">{episode.goal}</span>
              <span className="row-end episode-facts">
                {[
                  episode.calls && plural(episode.calls, "call"),
                  episode.errors.length && plural(episode.errors.length, "error"),
                  episode.duration_s && formatDuration(episode.duration_s),
                ]
                  .filter(Boolean)
                  .join(" · ")}
              </span>
              <span className="row-end">
                <Time at={at} />
              </span>
            </Link>
          </li>
        ))}
      </ul>
      <More more={episodes.more} loading={episodes.loading} />
    </>
  );
}
