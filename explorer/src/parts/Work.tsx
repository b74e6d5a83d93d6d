/** Work in progress: what sessions left open, what was handed over, where agents stand. */
import type { ReactNode } from "react";
import type { Api } from "../api";
import { plural } from "../format";
import { useQuery, type Query } from "../query";
import { paths } from "../router";
import { Link } from "./Link";
import { Markup } from "./Markup";
import { Command, Empty, FailureNote, Skeleton } from "./states";
import { Time } from "./Time";

/** Show a list that is loaded whole, or what is there instead. */
export function Loaded<One>({
  query,
  empty,
  children,
}: {
  query: Query<One[]>;
  empty: ReactNode;
  children: (items: One[]) => ReactNode;
}) {
  if (query.error) return <FailureNote failure={query.error} retry={query.reload} />;
  if (!query.data) return <Skeleton rows={5} tall />;
  return query.data.length ? children(query.data) : empty;
}

export function OpenWorkList({ project }: { project: string }) {
  const work = useQuery<Api<"OpenWork">[]>({ path: "/work", query: { project, limit: 50 } });
  return (
    <>
      {project && <Continuity project={project} />}
      <Loaded
        query={work}
        empty={
          <Empty title="No session has left work open.">
            <p>The task, decisions and next steps of each session appear here, for whoever goes on.</p>
          </Empty>
        }
      >
        {(items) => (
          <ul className="cards">
            {items.map(({ session_id, agent, at, state }) => (
              <li key={session_id}>
                <p className="meta">
                  <span>{agent}</span>
                  <Time at={at} />
                  <Link row to={paths.session(session_id)}>
                    Session
                  </Link>
                </p>
                <p className="card-title">{state.task || "No task stated"}</p>
                <Points title="Next" points={state.next} />
                <Points title="Blocked by" points={state.blockers} />
                <Points title="Decided" points={state.decisions} />
                <Points title="Done" points={state.progress} />
              </li>
            ))}
          </ul>
        )}
      </Loaded>
    </>
  );
}

/** The page with the state of a project's work, if it has one. */
function Continuity({ project }: { project: string }) {
  const page = useQuery<Api<"ContinuityText">>({ path: "/continuity", query: { project } }).data;
  if (!page?.text) return null;
  return (
    <details className="fold continuity">
      <summary>
        <span className="fold-name">CONTINUITY.md</span>
        <span className="fold-line">
          {page.is_written ? page.folder : "not written to the folder: tasks.continuity is off"}
        </span>
      </summary>
      <Markup text={page.text} />
    </details>
  );
}

function Points({ title, points }: { title: string; points: string[] | undefined }) {
  if (!points?.length) return null;
  return (
    <div className="points">
      <h3>{title}</h3>
      <ul>
        {points.map((one, at) => (
          <li key={at}>{one}</li>
        ))}
      </ul>
    </div>
  );
}

export function Handoffs({ project }: { project: string }) {
  const handoffs = useQuery<Api<"Handoff">[]>({ path: "/handoffs", query: { project, limit: 50 } });
  return (
    <Loaded
      query={handoffs}
      empty={
        <Empty title="No work has been handed over.">
          <p>
            One agent passes work on to another with the tool <code>handoff_write</code>, a person with:
          </p>
          <Command>lore handoff</Command>
        </Empty>
      }
    >
      {(items) => (
        <ul className="cards">
          {items.map((one) => (
            <li key={one.id}>
              <p className="meta">
                <span>
                  {one.from_agent || "someone"} → {one.to_agent || "anyone"}
                </span>
                <Time at={one.timestamp} />
                {one.read_at ? (
                  <span className="tag">taken over</span>
                ) : (
                  <span className="tag" data-tone="accent">
                    waiting
                  </span>
                )}
                {one.session_id && (
                  <Link row to={paths.session(one.session_id)}>
                    Session
                  </Link>
                )}
              </p>
              <Markup text={one.what_was_done ?? ""} />
              <Points title="Next" points={one.next} />
              <Points title="Needs testing" points={one.needs_testing} />
              <Points title="Known issues" points={one.known_issues} />
              <Points title="Decided" points={one.decisions} />
              <Points title="Files" points={one.artifacts} />
            </li>
          ))}
        </ul>
      )}
    </Loaded>
  );
}

export function Ledgers({ project }: { project: string }) {
  const ledgers = useQuery<Api<"AgentLedger">[]>({ path: "/ledgers", query: { project, limit: 50 } });
  return (
    <Loaded
      query={ledgers}
      empty={
        <Empty title="No agent has written a checkpoint.">
          <p>
            Agents record where they stand with the tool <code>checkpoint</code>.
          </p>
        </Empty>
      }
    >
      {(items) => (
        <ul className="cards">
          {items.map((one) => (
            <li key={one.agent_id + one.last_checkpoint}>
              <p className="meta">
                <strong>{one.agent_id}</strong>
                <Time at={one.last_checkpoint} />
                <span>{plural(one.tasks_completed ?? 0, "task")} completed</span>
                {one.uncommitted_changes && (
                  <span className="tag" data-tone="warn">
                    uncommitted changes
                  </span>
                )}
              </p>
              <p className="card-title">{one.current_task || one.current_goal || "No task stated"}</p>
              <Points title="Files" points={one.files_modified} />
              <Points title="Learned" points={one.patterns_learned} />
            </li>
          ))}
        </ul>
      )}
    </Loaded>
  );
}
