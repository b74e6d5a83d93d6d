/** Server-sent events: the page follows the memory. */
import { useEffect, useSyncExternalStore } from "react";
import { Failure, send } from "./api";
import { refreshAll } from "./query";

export type LiveState = "connecting" | "live" | "offline" | "loggedOut";

let state: LiveState = "connecting";
const listeners = new Set<() => void>();

/** Changes within this time are shown at once. */
const SETTLE_MS = 400;

/** A server that restarts is back in a few seconds. */
const RETRY_MS = 3000;

function setState(next: LiveState): void {
  if (state === next) return;
  const returns = state !== "connecting" && next === "live";
  state = next;
  for (const listener of listeners) listener();
  if (returns) refreshAll();
}

/** Find out why the server refuses its events; a browser is not told the status. */
async function whyRefused(): Promise<LiveState> {
  try {
    await send({ path: "/me" });
  } catch (error) {
    if (error instanceof Failure && error.status === 401) return "loggedOut";
  }
  return "offline";
}

/** Follow the events of the server while the page is shown. */
export function useLiveUpdates(): void {
  useEffect(() => {
    let settle: ReturnType<typeof setTimeout> | undefined;
    let retry: ReturnType<typeof setTimeout> | undefined;
    let source: EventSource | undefined;
    const changed = new Set<string>();
    function refresh(): void {
      refreshAll([...changed]);
      changed.clear();
    }
    function connect(): void {
      source = new EventSource("/api/v1/events");
      source.onopen = () => setState("live");
      source.addEventListener("change", (event: MessageEvent<string>) => {
        for (const table of (JSON.parse(event.data) as { changed: string[] }).changed) changed.add(table);
        clearTimeout(settle);
        settle = setTimeout(refresh, SETTLE_MS);
      });
      source.onerror = () => {
        // The browser itself tries again only if the connection broke, not if it was refused.
        if (source?.readyState !== EventSource.CLOSED) return setState("offline");
        void whyRefused().then(setState);
        retry = setTimeout(connect, RETRY_MS);
      };
    }
    connect();
    return () => {
      clearTimeout(settle);
      clearTimeout(retry);
      source?.close();
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
