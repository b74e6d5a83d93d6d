/** The keyboard: single keys, and two in a row such as "g s". */
import { useEffect, useRef, type RefObject } from "react";
import { navigate } from "./router";

export type Keys = Record<string, (event: KeyboardEvent) => void>;

/** A sequence is over after this time. */
const SEQUENCE_MS = 1200;

const stack: { current: Keys }[] = [];
let prefix = "";
let prefixAt = 0;

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
  );
}

/** Return the name of a key press: "j", "?", "mod+k", "Escape". */
export function keyName(event: Pick<KeyboardEvent, "key" | "ctrlKey" | "metaKey" | "altKey">): string {
  if (event.altKey) return "";
  return event.ctrlKey || event.metaKey ? `mod+${event.key.toLowerCase()}` : event.key;
}

function onKey(event: KeyboardEvent): void {
  const name = keyName(event);
  if (!name || event.defaultPrevented || event.isComposing) return;
  const typing = isTyping(event.target);
  if (typing && !name.startsWith("mod+") && name !== "Escape") return;
  // A modal dialog has its own keys.
  const open = document.querySelector("dialog[open]");
  if (open && !name.startsWith("mod+")) return;
  const sequence = prefix && event.timeStamp - prefixAt < SEQUENCE_MS ? `${prefix} ${name}` : "";
  prefix = "";
  for (const keys of [...stack].reverse()) {
    const act = (sequence && keys.current[sequence]) || (!sequence && keys.current[name]);
    if (act) {
      event.preventDefault();
      act(event);
      return;
    }
  }
  if (name === "Escape" && typing) (event.target as HTMLElement).blur();
  if (name === "g" && !typing) {
    prefix = "g";
    prefixAt = event.timeStamp;
  }
}

/** Bind keys while a component is shown; the latest component goes first. */
export function useKeys(keys: Keys): void {
  const latest = useRef(keys);
  useEffect(() => {
    latest.current = keys;
  });
  useEffect(() => {
    if (!stack.length) window.addEventListener("keydown", onKey);
    stack.push(latest);
    return () => {
      stack.splice(stack.indexOf(latest), 1);
      if (!stack.length) window.removeEventListener("keydown", onKey);
    };
  }, []);
}

/** Let j and k move the focus through the rows of a list, its elements with `data-row`, and e edit the fragment there. */
export function useRowKeys(list: RefObject<HTMLElement | null>): void {
  function move(step: number): void {
    const rows = [...(list.current?.querySelectorAll<HTMLElement>("[data-row]") ?? [])];
    const at = rows.findIndex((row) => row.contains(document.activeElement));
    const next = rows[at < 0 ? (step > 0 ? 0 : rows.length - 1) : at + step];
    next?.focus();
    next?.scrollIntoView({ block: "nearest" });
  }
  function edit(): void {
    const row = document.activeElement?.closest<HTMLAnchorElement>("a[data-row]");
    const path = row && list.current?.contains(row) ? row.pathname : "";
    if (path.startsWith("/fragments/")) navigate(`${path}?edit=1`);
  }
  useKeys({
    j: () => move(1),
    k: () => move(-1),
    e: edit,
    ArrowDown: () => move(1),
    ArrowUp: () => move(-1),
  });
}

/** Whether there is a keyboard to type on at once: on a phone a focused field hides half the page. */
export const hasKeyboard = window.matchMedia("(hover: hover)").matches;
