/** Conversations, the last one first: what they were about, and what they cost. */
import { useEffect, useRef, useState } from "react";
import type { Api } from "../api";
import { formatShort, formatUsd, plural } from "../format";
import { useRowKeys } from "../keys";
import { sessionTitle } from "../markup";
import { projectName, useProjects } from "../me";
import { Choice } from "../parts/Chips";
import { Icon } from "../parts/Icon";
import { Link } from "../parts/Link";
import { More } from "../parts/More";
import { Command, Empty, FailureNote, Skeleton } from "../parts/states";
import { Time } from "../parts/Time";
import { usePages } from "../query";
import { paths, useParameters } from "../router";
import "../styles/session.css";
import { useTitle } from "../title";

type Summary = Api<"SessionSummary">;

const PAUSE_MS = 220;
const TIMES = [
  ["1 day ago", "last day"],
  ["1 week ago", "last week"],
  ["1 month ago", "last month"],
] as const;

export default function Sessions() {
  useTitle("Sessions");
  const [values, change] = useParameters();
  const projects = useProjects();
  const list = useRef<HTMLUListElement>(null);
  const value = (name: string) => values.get(name) ?? "";
  const query = {
    limit: 50,
    query: value("q"),
    agent: value("agent"),
    project: value("project"),
    since: value("since"),
  };
  const sessions = usePages<Summary>({ path: "/sessions", query }, (one) => one.id);
  const agents = [
    ...new Set([...sessions.items.map((one) => one.agent), value("agent")].filter(Boolean)),
  ].sort();
  useRowKeys(list);
  return (
    <div className="page">
      <header className="page-head">
        <h1>Sessions</h1>
        <p>what agents and people said to each other</p>
      </header>
      <div className="chips session-filters" role="group" aria-label="Filters">
        <Find text={value("q")} change={(q) => change({ q })} />
        <Choice
          label="Project"
          value={value("project")}
          options={projects.map((one) => [one.id, projectName(projects, one.id)] as const)}
          change={(project) => change({ project })}
        />
        <Choice
          label="Agent"
          value={value("agent")}
          options={agents.map((one) => [one, one] as const)}
          change={(agent) => change({ agent })}
        />
        <Choice label="Time" value={value("since")} options={TIMES} change={(since) => change({ since })} />
      </div>
      {sessions.error && <FailureNote failure={sessions.error} />}
      {!sessions.items.length &&
        !sessions.error &&
        (sessions.loading ? (
          <Skeleton rows={8} tall />
        ) : (
          <NoSessions
            filtered={Boolean(value("q") || value("agent") || value("project") || value("since"))}
          />
        ))}
      <ul
        ref={list}
        className="rows"
        aria-label="Sessions"
        data-costs={sessions.items.some((one) => one.usd > 0) || undefined}
      >
        {sessions.items.map((session) => (
          <SessionRow key={session.id} session={session} />
        ))}
      </ul>
      <More more={sessions.more} loading={sessions.loading && sessions.items.length > 0} />
    </div>
  );
}

function Find({ text, change }: { text: string; change: (text: string) => void }) {
  const [typed, setTyped] = useState(text);
  useEffect(() => {
    if (typed === text) return undefined;
    const timer = setTimeout(() => change(typed.trim()), PAUSE_MS);
    return () => clearTimeout(timer);
  });
  return (
    <span className="find">
      <Icon name="search" />
      <input
        data-search=""
        type="search"
        aria-label="Find a session"
        placeholder="What was it about?"
        value={typed}
        onChange={(event) => setTyped(event.target.value)}
      />
    </span>
  );
}

/** A session that was spoken in lately is probably still going on. */
const RUNNING_MS = 10 * 60_000;

function isRunning(session: Summary): boolean {
  return session.state === "open" && Date.now() - Date.parse(session.last_message_at) < RUNNING_MS;
}

function SessionRow({ session }: { session: Summary }) {
  return (
    <li>
      <Link row to={paths.session(session.id)} className="row session-row">
        <span className="session-title">{sessionTitle(session) || "Untitled"}</span>
        <span className="meta">
          <span>{session.agent}</span>
          {session.project && <span>{session.project}</span>}
          <span>{plural(session.messages, "message")}</span>
          {session.fragments > 0 && <span>{plural(session.fragments, "fragment")} learned</span>}
          {isRunning(session) && (
            <span className="tag" data-tone="good">
              running
            </span>
          )}
        </span>
        <span className="session-figures row-end">
          <span title="Tokens of its messages">{formatShort(session.tokens)} tokens</span>
          {session.usd > 0 && <span>{formatUsd(session.usd)}</span>}
          <Time at={session.last_message_at} />
        </span>
      </Link>
    </li>
  );
}

function NoSessions({ filtered }: { filtered: boolean }) {
  if (filtered) return <Empty title="No session fits these filters." />;
  return (
    <Empty title="No session has been captured yet.">
      <p>Take in the transcripts that your agents have written so far:</p>
      <Command>lore capture --all</Command>
    </Empty>
  );
}
