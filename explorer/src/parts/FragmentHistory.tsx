/** The versions of a fragment with what changed, and the events of its life. */
import { useState } from "react";
import type { Api } from "../api";
import { plural, words } from "../format";
import { usePages, useQuery } from "../query";
import { More } from "./More";
import { Time } from "./Time";

type Version = Api<"VersionChange">;
type Event = Api<"FragmentEvent">;

/** So many events are shown at first. */
const FEW = 8;

export function FragmentHistory({ id }: { id: string }) {
  const path = `/fragments/${encodeURIComponent(id)}`;
  const versions = usePages<Version>({ path: `${path}/versions`, query: { limit: 20 } }, (one) =>
    String(one.version),
  );
  const events = useQuery<Event[]>({ path: `${path}/history` }).data ?? [];
  const [all, setAll] = useState(false);
  const shown = all ? events : events.slice(-FEW);
  return (
    <section className="section" aria-labelledby="history">
      <div className="section-head">
        <h2 id="history">History</h2>
        <p>{plural(versions.items.length || 1, "version")}</p>
      </div>
      {versions.items.length > 1 && (
        <ol className="versions">
          {versions.items.map((version) => (
            <VersionView key={version.version} version={version} />
          ))}
        </ol>
      )}
      <More more={versions.more} loading={false} />
      <ol className="events">
        {shown.map((event, at) => (
          <li key={at}>
            <Time at={event.at} />
            <span>{words(event.what)}</span>
            <span className="quiet">{event.detail}</span>
          </li>
        ))}
      </ol>
      {!all && events.length > FEW && (
        <button type="button" className="button" onClick={() => setAll(true)}>
          Show {events.length - FEW} earlier
        </button>
      )}
    </section>
  );
}

function VersionView({ version }: { version: Version }) {
  return (
    <li>
      <p className="meta">
        <strong>Version {version.version}</strong>
        {version.is_current && (
          <span className="tag" data-tone="accent">
            now
          </span>
        )}
        <Time at={version.at} />
        {version.reason && <span>{version.reason}</span>}
      </p>
      <p className="diff" dir="auto">
        {version.diff.length
          ? version.diff.map((part, at) =>
              part.change === "added" ? (
                <ins key={at}>{part.text}</ins>
              ) : part.change === "removed" ? (
                <del key={at}>{part.text}</del>
              ) : (
                <span key={at}>{part.text}</span>
              ),
            )
          : version.content}
      </p>
    </li>
  );
}
