import { expect, test } from "vitest";
import { joinPages, loadPages } from "../src/query";

const idOf = (id: string) => id;

/** A list of the server: a cursor is the id after which a page starts. */
function serve(list: string[], size: number) {
  return (cursor: string) => {
    const start = cursor ? list.indexOf(cursor) + 1 : 0;
    const items = list.slice(start, start + size);
    return Promise.resolve({ items, next: start + size < list.length ? (items.at(-1) ?? null) : null });
  };
}

test("later pages hold no item of the first page", async () => {
  const load = serve(["a", "b", "c", "d", "e"], 2);
  expect(await loadPages(load, "b", 1)).toEqual({ items: ["c", "d"], next: "d" });
  expect(await loadPages(load, "b", 9)).toEqual({ items: ["c", "d", "e"], next: null });
  expect(await loadPages(load, null, 2)).toEqual({ items: [], next: null });
});

test("a decided item does not come back after more pages were loaded", async () => {
  const before = serve(["a", "b", "c", "d", "e"], 2);
  const later = await loadPages(before, (await before("")).next, 1);
  const after = await serve(["b", "c", "d", "e"], 2)("");
  expect(joinPages(after.items, later.items, idOf)).toEqual(["b", "c", "d"]);
});

test("an item that new ones push from the first page stays in the list", async () => {
  const load = serve(["x", "a", "b", "c", "d"], 2);
  const first = await load("");
  const later = await loadPages(load, first.next, 1);
  expect(joinPages(first.items, later.items, idOf)).toEqual(["x", "a", "b", "c"]);
});

test("an item on two pages is shown once", () => {
  expect(joinPages(["a", "b"], ["b", "c"], idOf)).toEqual(["a", "b", "c"]);
});
