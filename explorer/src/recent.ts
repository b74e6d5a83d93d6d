/** Pages that this browser has opened, for the command palette. */

export type Recent = { path: string; title: string; kind: "fragment" | "session" };

const KEY = "lore.recent";
const MOST = 12;

export function recentPages(): Recent[] {
  try {
    const entries: unknown = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(entries) ? (entries as Recent[]).slice(0, MOST) : [];
  } catch {
    return [];
  }
}

export function rememberPage(page: Recent): void {
  const others = recentPages().filter((one) => one.path !== page.path);
  localStorage.setItem(KEY, JSON.stringify([page, ...others].slice(0, MOST)));
}
