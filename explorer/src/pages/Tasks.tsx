/** Tasks: open work, episodes, lessons, skills, handoffs, ledgers and strategies. */
import type { ComponentType } from "react";
import { projectName, useProjects } from "../me";
import { Choice, Segments } from "../parts/Chips";
import { Episodes } from "../parts/Episodes";
import { Handoffs, Ledgers, OpenWorkList } from "../parts/Work";
import { Lessons, Skills } from "../parts/Lessons";
import { Strategies } from "../parts/Strategies";
import { TaskList } from "../parts/TaskList";
import { useParameters } from "../router";
import "../styles/tasks.css";
import { useTitle } from "../title";

const VIEWS = [
  ["", "Open work"],
  ["tasks", "Tasks"],
  ["episodes", "Episodes"],
  ["lessons", "Lessons"],
  ["skills", "Skills"],
  ["handoffs", "Handoffs"],
  ["ledgers", "Ledgers"],
  ["strategies", "Strategies"],
] as const;

const SHOWN: Record<string, ComponentType<{ project: string }>> = {
  "": OpenWorkList,
  tasks: TaskList,
  episodes: Episodes,
  lessons: Lessons,
  skills: Skills,
  handoffs: Handoffs,
  ledgers: Ledgers,
  strategies: Strategies,
};

export default function Tasks() {
  useTitle("Tasks");
  const [values, change] = useParameters();
  const projects = useProjects();
  const view = values.get("view") ?? "";
  const project = values.get("project") ?? "";
  const Shown = SHOWN[view] ?? OpenWorkList;
  return (
    <div className="page tasks">
      <header className="page-head">
        <h1>Tasks</h1>
        <p>what was tried, what came of it, what is open</p>
      </header>
      <div className="chips tasks-views">
        <Segments label="View" value={view} options={VIEWS} change={(chosen) => change({ view: chosen })} />
        <Choice
          label="Project"
          value={project}
          options={projects.map((one) => [one.id, projectName(projects, one.id)] as const)}
          change={(chosen) => change({ project: chosen })}
        />
      </div>
      <Shown project={project} />
    </div>
  );
}
