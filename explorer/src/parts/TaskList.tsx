/** Tasks of agents: how they ended, and what became of the memories that each was given. */
import { useState } from "react";
import type { Api } from "../api";
import { formatDuration, words } from "../format";
import { plainLine } from "../markup";
import { usePages, useQuery } from "../query";
import { paths } from "../router";
import { Outcome } from "./Episodes";
import { Kind } from "./Kind";
import { Link } from "./Link";
import { More } from "./More";
import { Empty, FailureNote, Skeleton } from "./states";
import { Time } from "./Time";

type TaskRecord = Api<"TaskRecord">;
type TaskDetails = Api<"TaskDetails">;

export function TaskList({ project }: { project: string }) {
  const tasks = usePages<TaskRecord>({ path: "/tasks", query: { project, limit: 50 } }, (one) => one.id);
  if (tasks.error) return <FailureNote failure={tasks.error} />;
  if (!tasks.items.length) {
    return tasks.loading ? (
      <Skeleton rows={6} />
    ) : (
      <Empty title="No task has been started with memory yet.">
        <p>
          Agents ask with <code>before_task</code> what is known, and tell with <code>after_task</code> how it
          went. Task lists of Claude Code and Codex are followed by themselves.
        </p>
      </Empty>
    );
  }
  return (
    <>
      <ul className="rows">
        {tasks.items.map((task) => (
          <TaskRow key={task.id} task={task} />
        ))}
      </ul>
      <More more={tasks.more} loading={tasks.loading} />
    </>
  );
}

function TaskRow({ task }: { task: TaskRecord }) {
  const [open, setOpen] = useState(false);
  return (
    <li>
      <details className="task" onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary data-row="" className="row">
          <TaskState task={task} />
          <span className="row-title">{plainLine(task.goal)}</span>
          <span className="row-end episode-facts">{factsOf(task)}</span>
          <span className="row-end">
            <Time at={task.started_at} />
          </span>
        </summary>
        {open && <LoadedTask id={task.id} />}
      </details>
    </li>
  );
}

export function TaskState({ task }: { task: TaskRecord }) {
  if (task.state !== "open") return <Outcome outcome={task.outcome} />;
  return (
    <span className="tag outcome" data-tone="accent">
      open
    </span>
  );
}

/** Return the type of a task, its agent and how long it took, as one line. */
export function factsOf(task: TaskRecord): string {
  const seconds = task.ended_at ? (Date.parse(task.ended_at) - Date.parse(task.started_at)) / 1000 : 0;
  return [words(task.type), task.agent, seconds > 0 && formatDuration(seconds)].filter(Boolean).join(" · ");
}

function LoadedTask({ id }: { id: string }) {
  const details = useQuery<TaskDetails>({ path: `/tasks/${encodeURIComponent(id)}` });
  if (details.error) return <FailureNote failure={details.error} />;
  if (!details.data) return <Skeleton rows={3} />;
  return (
    <div className="task-body">
      <TaskMemories details={details.data} />
      <p>
        <Link to={paths.task(id)}>Page of this task</Link>
      </p>
    </div>
  );
}

/** Why a task ended as it did, where it belongs, and the memories that it was given. */
export function TaskMemories({ details }: { details: TaskDetails }) {
  const { task, memories, titles } = details;
  return (
    <>
      {task.reason && <p>{task.reason}</p>}
      <p className="meta">
        {task.profile && <span>profile {task.profile}</span>}
        {task.session_id && <Link to={paths.session(task.session_id)}>Session</Link>}
        {task.episode_id && <Link to={paths.fragment(task.episode_id)}>Episode</Link>}
      </p>
      {memories.length ? (
        <ul className="rows">
          {memories.map((one) => (
            <MemoryRow key={one.item_id} memory={one} title={titles[one.item_id] ?? one.item_id} />
          ))}
        </ul>
      ) : (
        <p className="quiet">Nothing was known for it.</p>
      )}
    </>
  );
}

function MemoryRow({ memory, title }: { memory: Api<"TaskMemory">; title: string }) {
  return (
    <li>
      <Link to={paths.message(memory.item_id)} className="row">
        <span className="row-kind">
          <Kind kind={memory.given_as} />
        </span>
        <span className="row-title">{plainLine(title)}</span>
        {memory.used === null ? (
          <span className="quiet small">not known</span>
        ) : (
          <span className="tag" data-tone={memory.used ? "good" : ""}>
            {memory.used ? `used${memory.sign ? `: ${memory.sign}` : ""}` : "not used"}
          </span>
        )}
        {memory.helped !== null && (
          <span className="tag" data-tone={memory.helped ? "good" : "bad"}>
            {memory.helped ? "helped" : "did not help"}
          </span>
        )}
      </Link>
    </li>
  );
}
