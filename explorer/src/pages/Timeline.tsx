/** Timeline: what was learned, replaced and forgotten, day by day, and the cycles that did it. */
import { useState } from "react";
import type { Api } from "../api";
import { formatClock, formatDay, formatDuration, formatTime, plural, words } from "../format";
import { plainLine } from "../markup";
import { projectName, useProjects } from "../me";
import { DayChart } from "../parts/DayChart";
import { Choice, Segments } from "../parts/Chips";
import { Kind } from "../parts/Kind";
import { Link } from "../parts/Link";
import { More } from "../parts/More";
import { ScrollTable } from "../parts/ScrollTable";
import { Command, Empty, FailureNote, Skeleton } from "../parts/states";
import { usePages, useQuery } from "../query";
import { paths, useParameters } from "../router";
import "../styles/timeline.css";
import { useTitle } from "../title";

type Entry = Api<"LearnedEntry">;
type Cycle = Api<"CycleReport">;

const VIEWS = [
  ["", "Knowledge"],
  ["cycles", "Consolidation"],
] as const;

export default function Timeline() {
  useTitle("Timeline");
  const [values, change] = useParameters();
  const projects = useProjects();
  const project = values.get("project") ?? "";
  const view = values.get("view") ?? "";
  return (
    <div className="page timeline">
      <header className="page-head">
        <h1>Timeline</h1>
        <p>what was learned and forgotten</p>
        <span className="push chips">
          <Segments label="View" value={view} options={VIEWS} change={(chosen) => change({ view: chosen })} />
          <Choice
            label="Project"
            value={project}
            options={projects.map((one) => [one.id, projectName(projects, one.id)] as const)}
            change={(chosen) => change({ project: chosen })}
          />
        </span>
      </header>
      {view === "cycles" ? <Cycles /> : <Learned project={project} />}
    </div>
  );
}

function Learned({ project }: { project: string }) {
  const days = useQuery<Api<"LearnedDay">[] | { items: Api<"LearnedDay">[] }>({
    path: "/learned/days",
    query: { project },
  }).data;
  const learned = usePages<Entry>(
    { path: "/learned", query: { project, limit: 100 } },
    (one) => one.at + one.verb + one.id,
  );
  const groups = Map.groupBy(learned.items, (one) => one.at.slice(0, 10));
  const counted = Array.isArray(days) ? days : (days?.items ?? []);
  return (
    <>
      <DayChart days={counted} />
      {learned.error && <FailureNote failure={learned.error} />}
      {!learned.items.length &&
        !learned.error &&
        (learned.loading ? (
          <Skeleton rows={8} />
        ) : (
          <Empty title="Nothing has been learned yet.">
            <p>Sessions are digested when they pause. To do it now:</p>
            <Command>lore distill</Command>
          </Empty>
        ))}
      {[...groups].map(([day, entries]) => (
        <section key={day} className="day">
          <h2>
            <time dateTime={day}>{formatDay(day)}</time>
            <span className="quiet">{plural(entries.length, "change")}</span>
          </h2>
          <ul className="rows">
            {entries.map((entry) => (
              <EntryRow key={entry.at + entry.verb + entry.id} entry={entry} />
            ))}
          </ul>
        </section>
      ))}
      <More more={learned.more} loading={learned.loading && learned.items.length > 0} />
    </>
  );
}

function EntryRow({ entry }: { entry: Entry }) {
  return (
    <li>
      <Link row to={paths.fragment(entry.id)} className="row" title={formatTime(entry.at)}>
        <span className="row-end entry-time">{formatClock(entry.at)}</span>
        <span className="verb" data-verb={entry.verb}>
          {entry.verb}
        </span>
        <span className="row-title">
          {plainLine(entry.title)}
          {entry.by && <span className="quiet"> → {plainLine(entry.by)}</span>}
        </span>
        <span className="row-end">
          <Kind kind={entry.kind} />
        </span>
      </Link>
    </li>
  );
}

function Cycles() {
  const cycles = usePages<Cycle>({ path: "/cycles", query: { limit: 20 } }, (one) => one.id);
  if (cycles.error) return <FailureNote failure={cycles.error} />;
  if (!cycles.items.length) {
    return cycles.loading ? (
      <Skeleton rows={5} tall />
    ) : (
      <Empty title="No consolidation cycle has run yet.">
        <p>It merges, links, and lets fade what nobody needs; the daemon runs it at night.</p>
        <Command>lore consolidate</Command>
      </Empty>
    );
  }
  return (
    <>
      <ol className="cycles">
        {cycles.items.map((cycle, at) => (
          <CycleView key={cycle.id} cycle={cycle} open={at === 0} />
        ))}
      </ol>
      <More more={cycles.more} loading={cycles.loading} />
    </>
  );
}

const TONES: Record<string, string> = { done: "good", failed: "bad", skipped: "", pending: "warn" };

function CycleView({ cycle, open }: { cycle: Cycle; open: boolean }) {
  const seconds = cycle.ended_at ? (Date.parse(cycle.ended_at) - Date.parse(cycle.started_at)) / 1000 : 0;
  const [isOpen, setOpen] = useState(open);
  return (
    <li>
      <details className="cycle" open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>
          <strong>{formatTime(cycle.started_at)}</strong>
          <span className="quiet">{seconds ? formatDuration(seconds) : "running"}</span>
          {cycle.dry_run && <span className="tag">dry run</span>}
          {cycle.undone && (
            <span className="tag" data-tone="warn">
              undone
            </span>
          )}
        </summary>
        <ScrollTable label="Phases">
          <thead>
            <tr>
              <th scope="col">Phase</th>
              <th scope="col">State</th>
              <th scope="col">What it did</th>
              <th scope="col">Took</th>
            </tr>
          </thead>
          <tbody>
            {cycle.phases.map((phase) => (
              <tr key={phase.phase}>
                <td>{words(phase.phase)}</td>
                <td>
                  <span className="tag" data-tone={TONES[phase.state]}>
                    {phase.state}
                  </span>
                </td>
                <td>
                  {Object.entries(phase.counts ?? {})
                    .filter(([, count]) => count)
                    .map(([name, count]) => `${count} ${words(name)}`)
                    .join(", ") || (
                    <span className="quiet">
                      {phase.reason || (phase.state === "pending" ? "–" : "nothing to do")}
                    </span>
                  )}
                  <Told lines={phase.told ?? []} />
                </td>
                <td className="number took">{phase.seconds ? formatDuration(phase.seconds) : ""}</td>
              </tr>
            ))}
          </tbody>
        </ScrollTable>
      </details>
    </li>
  );
}

/** Lines of a report that are shown at first. */
const FEW = 5;
const ID = /^([0-9a-f]{8}-[0-9a-f-]{27})\s+(.*)$/s;

/** What a phase tells: lines that begin with the id of a fragment lead to it. */
function Told({ lines }: { lines: string[] }) {
  const [all, setAll] = useState(false);
  const shown = all ? lines : lines.slice(0, FEW);
  if (!lines.length) return null;
  return (
    <ul className="told">
      {shown.map((line, at) => {
        const [, id, text] = ID.exec(line) ?? [];
        return <li key={at}>{id ? <Link to={paths.fragment(id)}>{text}</Link> : line}</li>;
      })}
      {lines.length > shown.length && (
        <li>
          <button type="button" className="button plain" onClick={() => setAll(true)}>
            {lines.length - shown.length} more
          </button>
        </li>
      )}
    </ul>
  );
}
