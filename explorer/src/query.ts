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

/** The pages after the first one, as they were loaded last. */
export type LaterPages<Item> = { items: Item[]; next: string | null };

/** Load up to `count` pages from a cursor on. */
export async function loadPages<Item>(
  load: (cursor: string) => Promise<Page<Item>>,
  cursor: string | null,
  count: number,
): Promise<LaterPages<Item>> {
  const items: Item[] = [];
  let next = cursor;
  for (let loaded = 0; loaded < count && next !== null; loaded += 1) {
    const page = await load(next);
    items.push(...page.items);
    next = page.next;
  }
  return { items, next };
}

/** Return the items of all pages without those whose id came before; a list may shift between its pages. */
export function joinPages<Item>(first: Item[], later: Item[], idOf: (item: Item) => string): Item[] {
  const known = new Set<string>();
  return [...first, ...later].filter((item) => !known.has(idOf(item)) && known.add(idOf(item)));
}

type Kept<Item> = LaterPages<Item> & { count: number };

/** The pages of a list after its first one, and the first page that they follow. */
type Tail<Item> = Kept<Item> & {
  key: string;
  head: Page<Item>;
  loading: boolean;
  error?: Failure;
};

/** Return the items of a paged list; all of its pages follow the memory as it changes. */
export function usePages<Item>(call: Call | null, idOf: (item: Item) => string): Pages<Item> {
  const head = useQuery<Page<Item>>(call);
  const key = call ? keyOf(call) : "";
  const [tail, setTail] = useState<Tail<Item>>();
  const latest = useRef(0);
  const refreshing = useRef(-1);
  const mine = tail?.key === key ? tail : undefined;
  const next = mine ? mine.next : (head.data?.next ?? null);

  /** Load `count` pages after the kept ones into the tail, unless a later call does. */
  async function fill(before: Tail<Item>, kept: Kept<Item>, count: number): Promise<void> {
    const turn = latest.current;
    const settle = (changes: Partial<Tail<Item>>) => {
      if (turn === latest.current) setTail({ ...before, error: undefined, loading: false, ...changes });
    };
    const load = async (cursor: string) =>
      call && turn === latest.current
        ? await send<Page<Item>>({ ...call, query: { ...call.query, cursor } })
        : { items: [], next: null };
    try {
      const { items, next } = await loadPages(load, kept.next, count);
      settle({ items: [...kept.items, ...items], next, count: kept.count + count });
    } catch (error) {
      settle({ error: error as Failure });
    }
  }

  function loadMore(): void {
    if (!head.data || next === null || mine?.loading) return;
    const before = mine ?? { key, head: head.data, count: 0, items: [], next, loading: false };
    latest.current += 1;
    setTail({ ...before, error: undefined, loading: true });
    void fill(before, before, 1);
  }

  useEffect(() => {
    if (!head.data || head.loading || !mine || mine.loading || mine.head === head.data) return;
    if (refreshing.current === latest.current) return;
    // The first page is new: what follows it may have moved or gone, too.
    latest.current += 1;
    refreshing.current = latest.current;
    const kept = { items: [], next: head.data.next, count: 0 };
    void fill({ ...mine, head: head.data }, kept, mine.count).finally(() => {
      refreshing.current = -1;
    });
  });
  return {
    items: joinPages(head.data?.items ?? [], mine?.items ?? [], idOf),
    error: head.error ?? mine?.error,
    loading: head.loading || Boolean(mine?.loading),
    more: next === null || mine?.loading ? undefined : loadMore,
  };
}
