/** Answers of the API as React state: cached, kept while they load anew, followed live. */
import { useCallback, useEffect, useRef, useState, useSyncExternalStore } from "react";
import { addressOf, Failure, send, type Call, type Page } from "./api";

export type Query<Result> = { data?: Result; error?: Failure; loading: boolean; reload: () => void };

type Entry = { data?: unknown; error?: Failure; loading: boolean; listeners: Set<() => void>; call: Call };

/** As many answers as a person goes back through. */
const MOST_ENTRIES = 200;

const entries = new Map<string, Entry>();

function keyOf(call: Call): string {
  return addressOf(call) + (call.body ? JSON.stringify(call.body) : "");
}

function entryOf(call: Call): Entry {
  const key = keyOf(call);
  let entry = entries.get(key);
  if (!entry) {
    entry = { loading: false, listeners: new Set(), call };
    entries.set(key, entry);
    for (const [old, one] of entries) {
      if (entries.size <= MOST_ENTRIES) break;
      if (!one.listeners.size) entries.delete(old);
    }
  }
  return entry;
}

async function load(entry: Entry): Promise<void> {
  if (entry.loading) return;
  update(entry, { loading: true });
  try {
    update(entry, { data: await send(entry.call), error: undefined, loading: false });
  } catch (error) {
    update(entry, {
      error: error instanceof Failure ? error : new Failure(0, String(error)),
      loading: false,
    });
  }
}

const versions = new WeakMap<Entry, number>();

function update(entry: Entry, changes: Partial<Entry>): void {
  Object.assign(entry, changes);
  versions.set(entry, (versions.get(entry) ?? 0) + 1);
  for (const listener of entry.listeners) listener();
}

/** The tables that a path shows; a path that is not here is loaded again at every change. */
const TABLES: [path: string, tables: string[]][] = [
  ["/me", []],
  ["/projects", ["projects"]],
  ["/sessions", ["sessions", "messages", "distillations", "spend", "fragments"]],
  ["/messages", ["messages"]],
  ["/fragments", ["fragments", "actions"]],
  ["/graph", ["fragments"]],
  ["/learned", ["fragments", "actions"]],
  ["/cycles", ["cycles"]],
  ["/review", ["review", "fragments", "actions"]],
  ["/spend", ["spend"]],
  ["/handoffs", ["handoffs"]],
  ["/ledgers", ["handoffs"]],
];

function isAffected(call: Call, changed: string[]): boolean {
  const tables = TABLES.find(([path]) => call.path === path || call.path.startsWith(`${path}/`))?.[1];
  return !tables || tables.some((table) => changed.includes(table));
}

/**
 * Load again what is on the page, if one of the tables behind it has changed; all if none is named.
 * Questions are not asked again: an answer may cost.
 */
export function refreshAll(changed?: string[]): void {
  for (const entry of entries.values()) {
    if (entry.listeners.size && !entry.call.body && (!changed || isAffected(entry.call, changed)))
      void load(entry);
  }
}

const NOTHING: Entry = { loading: false, listeners: new Set(), call: { path: "" } };

/** Return the answer to a call; null asks nothing. The last answer stays while another loads. */
export function useQuery<Result>(call: Call | null): Query<Result> {
  const key = call ? keyOf(call) : "";
  const entry = call ? entryOf(call) : NOTHING;
  const last = useRef<unknown>(undefined);
  const subscribe = useCallback(
    (listener: () => void) => {
      const one = key ? entries.get(key) : undefined;
      one?.listeners.add(listener);
      return () => one?.listeners.delete(listener);
    },
    [key],
  );
  useSyncExternalStore(subscribe, () => versions.get(entry) ?? 0);
  useEffect(() => {
    if (key) void load(entries.get(key) ?? NOTHING);
  }, [key]);
  useEffect(() => {
    if (entry.data !== undefined) last.current = entry.data;
  });
  const data = entry.data ?? (call && !entry.error ? last.current : undefined);
  return {
    data: data as Result | undefined,
    error: entry.error,
    loading: Boolean(call) && (entry.loading || (entry.data === undefined && !entry.error)),
    reload: useCallback(() => void (key && load(entries.get(key) ?? NOTHING)), [key]),
  };
}

export type Pages<Item> = { items: Item[]; error?: Failure; loading: boolean; more?: () => void };

/** Return the items without those whose id came before; a list may shift between its pages. */
function withoutRepeats<Item>(items: Item[], idOf: (item: Item) => string): Item[] {
  const known = new Set<string>();
  return items.filter((item) => !known.has(idOf(item)) && known.add(idOf(item)));
}

/** Return the items of a paged list; new ones at its head appear as the memory changes. */
export function usePages<Item>(call: Call | null, idOf: (item: Item) => string): Pages<Item> {
  const head = useQuery<Page<Item>>(call);
  const key = call ? keyOf(call) : "";
  const [tail, setTail] = useState<{
    key: string;
    items: Item[];
    next: string | null;
    loading: boolean;
    error?: Failure;
  }>();
  const mine = tail?.key === key ? tail : undefined;
  const first = head.data?.items ?? [];
  const items = withoutRepeats([...first, ...(mine?.items ?? [])], idOf);
  const next = mine ? mine.next : (head.data?.next ?? null);

  async function loadMore(): Promise<void> {
    if (!call || next === null || mine?.loading) return;
    const before = mine?.items ?? first;
    setTail({ key, items: before, next, loading: true });
    try {
      const page = await send<Page<Item>>({ ...call, query: { ...call.query, cursor: next } });
      setTail({ key, items: [...before, ...page.items], next: page.next, loading: false });
    } catch (error) {
      setTail({ key, items: before, next, loading: false, error: error as Failure });
    }
  }
  return {
    items,
    error: head.error ?? mine?.error,
    loading: head.loading || Boolean(mine?.loading),
    more: next === null || mine?.loading ? undefined : () => void loadMore(),
  };
}
