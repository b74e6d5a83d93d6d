/** The pages as the rail, the palette and the keys name them. */
import type { PageName } from "./router";

export type Entry = { page: PageName; path: string; name: string; key: string; about: string };

export const ENTRIES: readonly Entry[] = [
  { page: "search", path: "/", name: "Search", key: "s", about: "Find anything that was said or learned" },
  { page: "ask", path: "/ask", name: "Ask", key: "a", about: "One answer, with its sources" },
  { page: "sessions", path: "/sessions", name: "Sessions", key: "o", about: "Conversations, turn by turn" },
  { page: "review", path: "/review", name: "Review", key: "r", about: "What waits for your decision" },
  {
    page: "timeline",
    path: "/timeline",
    name: "Timeline",
    key: "t",
    about: "What was learned and forgotten",
  },
  { page: "graph", path: "/graph", name: "Graph", key: "g", about: "Knowledge and how it hangs together" },
  { page: "tasks", path: "/tasks", name: "Tasks", key: "k", about: "Episodes, lessons, skills, open work" },
  { page: "spend", path: "/spend", name: "Spend", key: "m", about: "What models cost, and what Lore saved" },
  { page: "health", path: "/health", name: "Health", key: "h", about: "Jobs, indexes and checks" },
];
