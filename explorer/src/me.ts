/** Who looks at the pages, and what they may do. */
import type { Api } from "./api";
import { useQuery } from "./query";

export type Me = { name: string; scopes: string[]; version: string; read_only: boolean };

export function useMe(): Me | undefined {
  return useQuery<Me>({ path: "/me" }).data;
}

/** Return why a change is not possible, or an empty text if it is. */
export function useRefusal(scope: "write" | "admin" = "write"): string {
  const me = useMe();
  if (!me) return "";
  if (me.read_only) return "This memory is open for reading only.";
  return me.scopes.includes(scope)
    ? ""
    : `This login may not change anything here: it lacks the scope '${scope}'.`;
}

/** Return the names of projects by their ids. */
export function useProjects(): Api<"Project">[] {
  return (
    useQuery<{ items: Api<"Project">[] }>({ path: "/projects", query: { limit: 500 } }).data?.items ?? []
  );
}

export function projectName(projects: Api<"Project">[], id: string | null | undefined): string {
  const project = projects.find((one) => one.id === id);
  return project ? project.name || project.path.split("/").pop() || project.path : "";
}
