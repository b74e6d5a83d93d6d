/** One task: how it ended, and what became of the memories that it was given. */
import type { Api } from "../api";
import { plainLine } from "../markup";
import { Link } from "../parts/Link";
import { Empty, FailureNote, Skeleton } from "../parts/states";
import { factsOf, TaskMemories, TaskState } from "../parts/TaskList";
import { Time } from "../parts/Time";
import { useQuery } from "../query";
import "../styles/tasks.css";
import { useTitle } from "../title";

export default function TaskPage({ id }: { id: string }) {
  const details = useQuery<Api<"TaskDetails">>({ path: `/tasks/${encodeURIComponent(id)}` });
  const task = details.data?.task;
  const title = task ? plainLine(task.goal) : "";
  useTitle(title || "Task");
  if (details.error?.status === 404)
    return (
      <Empty title="There is no task with this id.">
        <Link to="/tasks?view=tasks">All tasks</Link>
      </Empty>
    );
  if (details.error && !details.data) return <FailureNote failure={details.error} retry={details.reload} />;
  if (!details.data || !task) return <Skeleton rows={6} />;
  return (
    <div className="page tasks">
      <header className="page-head">
        <h1>{title}</h1>
      </header>
      <p className="meta">
        <TaskState task={task} />
        <span>{factsOf(task)}</span>
        <Time at={task.started_at} />
        <Link to="/tasks?view=tasks">All tasks</Link>
      </p>
      <TaskMemories details={details.data} />
    </div>
  );
}
