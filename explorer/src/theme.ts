/** Light, dark, or as the system is. */
import { useSyncExternalStore } from "react";

export const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

const KEY = "lore.theme";
const listeners = new Set<() => void>();

function stored(): Theme {
  const value = localStorage.getItem(KEY);
  return THEMES.find((theme) => theme === value) ?? "system";
}

const system = matchMedia("(prefers-color-scheme: dark)");

/** Apply the theme that was chosen last. */
export function applyTheme(theme: Theme = stored()): void {
  localStorage.setItem(KEY, theme);
  showTheme();
}

/** The page is light or dark; the styles need not know what the system prefers. */
function showTheme(): void {
  const theme = stored();
  document.documentElement.dataset.theme = theme === "system" ? (system.matches ? "dark" : "light") : theme;
  for (const listener of listeners) listener();
}

system.addEventListener("change", showTheme);

export function nextTheme(theme: Theme): Theme {
  return THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] ?? "system";
}

function listen(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Return what was chosen. */
export function useTheme(): Theme {
  return useSyncExternalStore(listen, stored);
}

/** Return what is shown, "light" or "dark". */
export function useShownTheme(): string {
  return useSyncExternalStore(listen, () => document.documentElement.dataset.theme ?? "");
}
