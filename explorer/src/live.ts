/** Server-sent events: the page follows the memory. */
import { useEffect, useSyncExternalStore } from "react";
import { refreshAll } from "./query";

export type LiveState = "connecting" | "live" | "offline";

let state: LiveState = "connecting";
const listeners = new Set<() => void>();

/** Changes within this time are shown at once. */
const SETTLE_MS = 400;

function setState(next: LiveState): void {
  if (state === next) return;
  const returns = state === "offline" && next === "live";
  state = next;
  for (const listener of listeners) listener();
  if (returns) refreshAll();
}

/** Follow the events of the server while the page is shown. */
export function useLiveUpdates(): void {
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const source = new EventSource("/api/v1/events");
    source.onopen = () => setState("live");
    source.onerror = () => setState("offline");
    source.onmessage = () => {
      clearTimeout(timer);
      timer = setTimeout(refreshAll, SETTLE_MS);
    };
    return () => {
      clearTimeout(timer);
      source.close();
    };
  }, []);
}

export function useLiveState(): LiveState {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => state,
  );
}
