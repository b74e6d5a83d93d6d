/** Paths of the pages, and the location as React state. */
import { useSyncExternalStore } from "react";

export const PAGES = [
  "search",
  "ask",
  "sessions",
  "review",
  "timeline",
  "graph",
  "tasks",
  "spend",
  "health",
] as const;
export type PageName = (typeof PAGES)[number];

export type Route =
  { page: PageName } | { page: "fragment" | "session" | "item" | "task"; id: string } | { page: "missing" };

/** Return the page that a path names. */
export function parseRoute(path: string): Route {
  const [first = "", second, third] = path.replace(/^\/+|\/+$/g, "").split("/");
  if (third !== undefined) return { page: "missing" };
  if (second !== undefined) {
    const id = decode(second);
    if (first === "fragments") return { page: "fragment", id };
    if (first === "sessions") return { page: "session", id };
    if (first === "messages") return { page: "item", id };
    if (first === "tasks") return { page: "task", id };
    return { page: "missing" };
  }
  if (first === "") return { page: "search" };
  const page = PAGES.find((name) => name === first);
  return page ? { page } : { page: "missing" };
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export type Parameters = Record<string, string | undefined>;

/** Return a path with those parameters that have a value. */
export function withParameters(path: string, parameters: Parameters): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) if (value) query.set(name, value);
  const text = query.toString();
  return text ? `${path}?${text}` : path;
}

export const paths = {
  fragment: (id: string) => `/fragments/${encodeURIComponent(id)}`,
  session: (id: string, at: Parameters = {}) => withParameters(`/sessions/${encodeURIComponent(id)}`, at),
  message: (id: string) => `/messages/${encodeURIComponent(id)}`,
  task: (id: string) => `/tasks/${encodeURIComponent(id)}`,
  search: (parameters: Parameters) => withParameters("/", parameters),
};

/** Return the page of an item that a search found. */
export function itemPath(item: { id: string; type: string; session_id?: string }): string {
  if (item.type === "fragment") return paths.fragment(item.id);
  if (item.type === "message") return paths.message(item.id);
  return paths.session(item.session_id ?? "", { log: item.id });
}

const listeners = new Set<() => void>();
const scrolls = new Map<string, number>();

function notify(): void {
  for (const listener of listeners) listener();
}

export function navigate(to: string, options: { replace?: boolean } = {}): void {
  const here = window.location.pathname + window.location.search;
  if (to === here) return;
  if (options.replace) window.history.replaceState(null, "", to);
  else {
    scrolls.set(here, window.scrollY);
    window.history.pushState(null, "", to);
    if (to.split("?")[0] !== here.split("?")[0]) window.scrollTo(0, 0);
  }
  notify();
}

/** Return how far a page was scrolled when it was left. */
export function scrollOf(address: string): number {
  return scrolls.get(address) ?? 0;
}

function subscribe(listener: () => void): () => void {
  if (!listeners.size) window.addEventListener("popstate", notify);
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
    if (!listeners.size) window.removeEventListener("popstate", notify);
  };
}

/** Return the path and query of the page, and follow them. */
export function useAddress(): string {
  return useSyncExternalStore(subscribe, () => window.location.pathname + window.location.search);
}

/** Return the parameters in the address, and a function that changes some of them. */
export function useParameters(): [URLSearchParams, (changes: Parameters, replace?: boolean) => void] {
  const address = useAddress();
  const parameters = new URLSearchParams(address.split("?")[1] ?? "");
  function change(changes: Parameters, replace = true): void {
    const all = { ...Object.fromEntries(parameters), ...changes };
    navigate(withParameters(window.location.pathname, all), { replace });
  }
  return [parameters, change];
}
