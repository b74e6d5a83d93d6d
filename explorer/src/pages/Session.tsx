/** One session, turn by turn: what was said, what it cost, what memory gave and took. */
import { useEffect, useRef, useState } from "react";
import type { Api } from "../api";
import { formatCount, formatDuration, formatShort, formatUsd, plural } from "../format";
import { useKeys } from "../keys";
import { sessionTitle } from "../markup";
import { Icon } from "../parts/Icon";
import { Link } from "../parts/Link";
import { More } from "../parts/More";
import { PromptState } from "../parts/PromptState";
import { Empty, FailureNote, Skeleton } from "../parts/states";
import { Time } from "../parts/Time";
import { TurnChart } from "../parts/TurnChart";
import { TurnView } from "../parts/TurnView";
import { usePages, useQuery } from "../query";
import { rememberPage } from "../recent";
import { paths, useParameters, withParameters } from "../router";
import "../styles/session.css";
import { useTitle } from "../title";

type SessionPageData = Api<"SessionPage">;
type Turn = Api<"Turn">;

/** Turns of a page; messages are loaded as they come into view. */
const TURNS = 50;

export default function SessionPage({ id }: { id: string }) {
  const path = `/sessions/${encodeURIComponent(id)}`;
  const page = useQuery<SessionPageData>({ path });
  const [values] = useParameters();
  const turns = usePages<Turn>({ path: `${path}/turns`, query: { limit: TURNS } }, (one) =>
    String(one.number),
  );
  const title = page.data ? sessionTitle(page.data.session) || `Session with ${page.data.session.agent}` : "";
  useTitle(title || "Session");
  useEffect(() => {
    if (title) rememberPage({ path: paths.session(id), title, kind: "session" });
  }, [id, title]);
  const target = useTarget(turns.items, values, turns.more);
  if (page.error?.status === 404)
    return (
      <Empty title="There is no session with this id.">
        <Link to="/sessions">All sessions</Link>
      </Empty>
    );
  if (page.error && !page.data) return <FailureNote failure={page.error} retry={page.reload} />;
  if (!page.data) return <Skeleton rows={8} />;
  return (
    <article className="page session">
      <Head data={page.data} title={title} />
      <TurnChart turns={turns.items} session={id} count={page.data.turns} />
      {page.data.prompt && <PromptState prompt={page.data.prompt} />}
      {turns.error && <FailureNote failure={turns.error} />}
      {!turns.items.length &&
        (turns.loading ? <Skeleton rows={6} tall /> : <Empty title="Nobody has said anything yet." />)}
      <TurnList turns={turns.items} session={id} target={target} message={values.get("message") ?? ""} />
      <More more={turns.more} loading={turns.loading && turns.items.length > 0} />
    </article>
  );
}

/** Return the number of the turn that the address names, and load turns until it is there. */
function useTarget(turns: Turn[], values: URLSearchParams, more?: () => void): number {
  const at = Number(values.get("at") ?? NaN);
  const log = values.get("log") ?? "";
  const wanted = Number(values.get("turn") ?? NaN);
  const found = turns.find(
    (turn) =>
      turn.number === wanted ||
      (turn.first <= at && at <= turn.last) ||
      (log !== "" && turn.logs.some((one) => one.id === log)),
  );
  const isMissing = !found && (Number.isFinite(at) || Number.isFinite(wanted) || log !== "");
  useEffect(() => {
    if (isMissing) more?.();
  });
  return found?.number ?? 0;
}

function Head({ data, title }: { data: SessionPageData; title: string }) {
  const { session } = data;
  const seconds = (Date.parse(session.last_message_at) - Date.parse(session.started_at)) / 1000;
  const saved = session.without_usd - session.usd;
  return (
    <header className="session-head">
      <nav className="breadcrumb" aria-label="Place">
        <Link to="/sessions">Sessions</Link>
        {session.parent_id && (
          <>
            <Icon name="right" />
            <Link to={paths.session(session.parent_id)}>Parent session</Link>
          </>
        )}
      </nav>
      <h1>{title}</h1>
      <p className="meta">
        <span>{session.agent}</span>
        {session.project && (
          <Link to={withParameters("/sessions", { project: session.project_id ?? "" })}>
            {session.project}
          </Link>
        )}
        {session.branch && <code>{session.branch}</code>}
        <Time at={session.started_at} />
        {seconds > 60 && <span>{formatDuration(seconds)}</span>}
      </p>
      <dl className="figures">
        <div>
          <dt>turns</dt>
          <dd>{formatCount(data.turns)}</dd>
        </div>
        <div>
          <dt>messages</dt>
          <dd>{formatCount(session.messages)}</dd>
        </div>
        <div>
          <dt>tokens said</dt>
          <dd>{formatShort(session.tokens)}</dd>
        </div>
        {session.requests > 0 && (
          <div>
            <dt>{plural(session.requests, "request")}</dt>
            <dd>{formatUsd(session.usd)}</dd>
          </div>
        )}
        {saved > 0.0005 && (
          <div>
            <dt>saved</dt>
            <dd>{formatUsd(saved)}</dd>
          </div>
        )}
        <div>
          <dt>{session.fragments === 1 ? "fragment learned" : "fragments learned"}</dt>
          <dd>{formatCount(session.fragments)}</dd>
        </div>
      </dl>
    </header>
  );
}

type ListProperties = { turns: Turn[]; session: string; target: number; message: string };

function TurnList({ turns, session, target, message }: ListProperties) {
  const list = useRef<HTMLOListElement>(null);
  const [reached, setReached] = useState(0);
  useEffect(() => {
    if (!target || reached === target) return;
    const turn = document.getElementById(`turn-${target}`);
    if (turn) {
      turn.scrollIntoView({ block: "start" });
      setReached(target);
    }
  }, [target, reached, turns]);
  function move(step: number): void {
    const all = [...(list.current?.querySelectorAll<HTMLElement>(".turn") ?? [])];
    const edge = 80;
    const at = all.findLastIndex((one) => one.getBoundingClientRect().top < edge);
    const next = all[Math.max(at + step, 0)];
    next?.scrollIntoView({ block: "start" });
    next?.querySelector<HTMLElement>("[data-row]")?.focus({ preventScroll: true });
  }
  useKeys({ n: () => move(1), p: () => move(-1), j: () => move(1), k: () => move(-1) });
  return (
    <ol ref={list} className="turns">
      {turns.map((turn) => (
        <TurnView
          key={turn.number}
          turn={turn}
          session={session}
          message={turn.number === target ? message : ""}
        />
      ))}
    </ol>
  );
}
