/** The geometry of the graph: what is seen at a time, where it is drawn, what is under the pointer. */

export type Node = {
  id: string;
  title: string;
  kind: string;
  relevance: number;
  importance: number;
  degree: number;
  x: number;
  y: number;
  created_at: string;
  replaced_at: string | null;
};
export type View = { scale: number; x: number; y: number };
export type Size = { width: number; height: number };
export type Presence = "absent" | "present" | "replaced";

const MARGIN = 40;
const SMALLEST = 0.3;
const LARGEST = 30;

/** Return the view that shows all nodes, which lie within -1 and 1. */
export function fit(size: Size): View {
  const scale = Math.max(Math.min(size.width, size.height) / 2 - MARGIN, 20);
  const wide = Math.min(size.width / Math.max(size.height, 1), 1.8);
  return { scale: scale * Math.max(wide * 0.75, 1), x: size.width / 2, y: size.height / 2 };
}

/** Return a view in which the point under the pointer stays where it is. */
export function zoom(view: View, factor: number, x: number, y: number, base: number): View {
  const scale = Math.min(Math.max(view.scale * factor, base * SMALLEST), base * LARGEST);
  const ratio = scale / view.scale;
  return { scale, x: x - (x - view.x) * ratio, y: y - (y - view.y) * ratio };
}

/** Return the view with a node in its middle. */
export function centre(node: Node, view: View, size: Size): View {
  return {
    scale: view.scale,
    x: size.width / 2 - node.x * view.scale,
    y: size.height / 2 - node.y * view.scale,
  };
}

/** Return whether a node was known at a time. */
export function presenceAt(node: Node, time: number): Presence {
  if (Date.parse(node.created_at) > time) return "absent";
  return node.replaced_at && Date.parse(node.replaced_at) <= time ? "replaced" : "present";
}

/** Return the radius of a node in pixels; of many they are small. */
export function radiusOf(node: Node, count: number): number {
  const share = Math.min(Math.max(Math.sqrt(150 / count), 0.45), 1);
  return (3 + node.importance * 3 + Math.min(Math.sqrt(node.degree), 4)) * share;
}

/** Return the place of the node under a point, or -1. */
export function nodeAt(
  nodes: readonly Node[],
  view: View,
  x: number,
  y: number,
  isShown: (at: number) => boolean,
): number {
  const reach = 5;
  let best = -1;
  let nearest = Infinity;
  nodes.forEach((node, at) => {
    if (!isShown(at)) return;
    const distance = Math.hypot(node.x * view.scale + view.x - x, node.y * view.scale + view.y - y);
    if (distance <= radiusOf(node, nodes.length) + reach && distance < nearest) {
      best = at;
      nearest = distance;
    }
  });
  return best;
}

/** Return the first and last time at which something was learned. */
export function timeSpan(nodes: readonly Node[]): [number, number] {
  const times = nodes.map((node) => Date.parse(node.created_at));
  return [
    Math.min(...times),
    Math.max(...times, ...nodes.flatMap((node) => (node.replaced_at ? [Date.parse(node.replaced_at)] : []))),
  ];
}

const ROUNDS = 60;

/** Return the nodes with those that overlap moved apart; the shape of the whole stays. */
export function spread<One extends Node>(nodes: readonly One[]): One[] {
  const least = Math.min(Math.max(1.25 / Math.sqrt(Math.max(nodes.length, 1)), 0.03), 0.11);
  const xs = nodes.map((node) => node.x);
  const ys = nodes.map((node) => node.y);
  for (let round = 0; round < ROUNDS; round += 1) if (!pushApart(xs, ys, least)) break;
  const most = Math.max(1, ...xs.map(Math.abs), ...ys.map(Math.abs));
  return nodes.map((node, at) => ({ ...node, x: (xs[at] ?? 0) / most, y: (ys[at] ?? 0) / most }));
}

/** Move each pair that is too near half of what is missing; return whether there was one. */
function pushApart(xs: number[], ys: number[], least: number): boolean {
  let moved = false;
  const order = xs.map((_, at) => at).sort((a, b) => (xs[a] ?? 0) - (xs[b] ?? 0));
  order.forEach((a, place) => {
    for (let next = place + 1; next < order.length; next += 1) {
      const b = order[next] ?? 0;
      const dx = (xs[b] ?? 0) - (xs[a] ?? 0);
      if (dx > least * 1.5) break;
      const dy = (ys[b] ?? 0) - (ys[a] ?? 0);
      const distance = Math.hypot(dx, dy);
      if (distance >= least) continue;
      // Two on the same spot part in a direction that depends on their places alone.
      const angle = distance > 1e-6 ? Math.atan2(dy, dx) : (a * 7 + b) % 6;
      const step = (least - distance) / 2;
      xs[a] = (xs[a] ?? 0) - Math.cos(angle) * step;
      ys[a] = (ys[a] ?? 0) - Math.sin(angle) * step;
      xs[b] = (xs[b] ?? 0) + Math.cos(angle) * step;
      ys[b] = (ys[b] ?? 0) + Math.sin(angle) * step;
      moved = true;
    }
  });
  return moved;
}
