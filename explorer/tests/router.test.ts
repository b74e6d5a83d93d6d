import { expect, test } from "vitest";
import { itemPath, parseRoute, paths, withParameters } from "../src/router";

test("every page has a path, and the search has two", () => {
  expect(parseRoute("/")).toEqual({ page: "search" });
  expect(parseRoute("/search")).toEqual({ page: "search" });
  expect(parseRoute("/health/")).toEqual({ page: "health" });
});

test("a path with an id names an item", () => {
  expect(parseRoute("/fragments/01a%2Fb")).toEqual({ page: "fragment", id: "01a/b" });
  expect(parseRoute("/messages/01a")).toEqual({ page: "item", id: "01a" });
  expect(parseRoute(paths.task("01a"))).toEqual({ page: "task", id: "01a" });
});

test("other paths are no page", () => {
  for (const path of ["/nothing", "/fragments/a/b", "/spend/x", "/constructor"])
    expect(parseRoute(path)).toEqual({ page: "missing" });
});

test("a broken escape is taken as it is", () => {
  expect(parseRoute("/fragments/%E0%A4%A")).toEqual({ page: "fragment", id: "%E0%A4%A" });
});

test("parameters without a value are left out", () => {
  expect(withParameters("/", { q: "a b&c", kind: "", project: undefined })).toBe("/?q=a+b%26c");
});

test("a log leads to its place in a session", () => {
  expect(itemPath({ id: "d1", type: "distillation", session_id: "s1" })).toBe("/sessions/s1?log=d1");
});
