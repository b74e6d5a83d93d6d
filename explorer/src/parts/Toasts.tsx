/** Short messages at the bottom, with a way back. */
import { useSyncExternalStore } from "react";
import { send } from "../api";
import { useKeys } from "../keys";
import { refreshAll } from "../query";

type Toast = { id: number; text: string; undo?: string; tone: "plain" | "bad" };

const SHOWN_MS = 8000;
let toasts: Toast[] = [];
let last = 0;
/** Actions of this page that can be undone, oldest first. */
const actions: string[] = [];
const listeners = new Set<() => void>();

function set(next: Toast[]): void {
  toasts = next;
  for (const listener of listeners) listener();
}

function dismiss(id: number): void {
  set(toasts.filter((toast) => toast.id !== id));
}

/** Show a message; `undo` is the action that its button takes back. */
export function toast(text: string, options: { undo?: string; tone?: Toast["tone"] } = {}): void {
  const id = ++last;
  if (options.undo) actions.push(options.undo);
  set([...toasts.slice(-2), { id, text, undo: options.undo, tone: options.tone ?? "plain" }]);
  setTimeout(() => dismiss(id), SHOWN_MS);
}

async function undo(action: string): Promise<void> {
  actions.splice(actions.indexOf(action), 1);
  set(toasts.filter((one) => one.undo !== action));
  try {
    await send<unknown>({ path: "/undo", body: { action } });
    toast("Undone");
    refreshAll();
  } catch (error) {
    toast(error instanceof Error ? error.message : String(error), { tone: "bad" });
  }
}

export function Toasts() {
  const shown = useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => toasts,
  );
  useKeys({
    u: () => {
      const action = actions.at(-1);
      if (action) void undo(action);
      else toast("Nothing to undo on this page; 'lore undo' goes further back.");
    },
  });
  return (
    <div className="toasts" role="status" aria-live="polite">
      {shown.map((one) => (
        <div key={one.id} className="toast" data-tone={one.tone}>
          <span>{one.text}</span>
          {one.undo && (
            <button type="button" className="toast-undo" onClick={() => void undo(one.undo ?? "")}>
              Undo <kbd>u</kbd>
            </button>
          )}
        </div>
      ))}
    </div>
  );
}
