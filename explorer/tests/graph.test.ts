import { expect, test } from "vitest";
import { fit, nodeAt, presenceAt, spread, zoom, type Node } from "../src/graph";

const node = (changes: Partial<Node>): Node => ({
  id: "a",
  title: "A",
  kind: "fact",
  relevance: 0.5,
  importance: 0.5,
  degree: 1,
  x: 0,
  y: 0,
  created_at: "2026-01-01T00:00:00Z",
  replaced_at: null,
  ...changes,
});

test("a fragment is absent before it was learned, and replaced afterwards", () => {
  const one = node({ replaced_at: "2026-03-01T00:00:00Z" });
  const at = (day: string) => presenceAt(one, Date.parse(day));
  expect([at("2025-12-31"), at("2026-02-01"), at("2026-04-01")]).toEqual(["absent", "present", "replaced"]);
});

test("the point under the pointer stays where it is", () => {
  const before = fit({ width: 800, height: 600 });
  const after = zoom(before, 2, 100, 100, before.scale);
  expect((100 - after.x) / after.scale).toBeCloseTo((100 - before.x) / before.scale);
});

test("the nearest of the shown nodes is under the pointer", () => {
  const view = { scale: 100, x: 0, y: 0 };
  const nodes = [node({ x: 0 }), node({ x: 0.05 })];
  expect(nodeAt(nodes, view, 5, 0, () => true)).toBe(1);
  expect(nodeAt(nodes, view, 5, 0, (at) => at === 0)).toBe(0);
  expect(nodeAt(nodes, view, 90, 90, () => true)).toBe(-1);
});

test("nodes that lie on each other are moved apart, the same way each time", () => {
  const nodes = Array.from({ length: 30 }, () => node({}));
  const apart = spread(nodes);
  expect(apart).toEqual(spread(nodes));
  const distances = apart.flatMap((a, at) =>
    apart.slice(at + 1).map((b) => Math.hypot(a.x - b.x, a.y - b.y)),
  );
  expect(Math.min(...distances)).toBeGreaterThan(0.05);
  expect(Math.max(...apart.map((one) => Math.abs(one.x)))).toBeLessThanOrEqual(1);
});
