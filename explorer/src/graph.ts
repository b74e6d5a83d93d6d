/** The geometry of the graph: what is seen at a time, where it is drawn, what is under the pointer. */

export type Node = {
  id: string; title: string; kind: string; relevance: number; importance: number; degree: number;
  x: number; y: number; created_at: string; replaced_at: string | null;
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
  return { scale: view.scale, x: size.width / 2 - node.x * view.scale, y: size.height / 2 - node.y * view.scale };
}

/** Return whether a node was known at a time. */
export function presenceAt(node: Node, time: number): Presence {
  if (Date.parse(node.created_at) > time) return "absent";
  return node.replaced_at && Date.parse(node.replaced_at) <= time ? "replaced" : "present";
}

/** Return the radius of a node in pixels. */
export function radiusOf(node: Node): number {
  return 3 + node.importance * 3 + Math.min(Math.sqrt(node.degree), 4);
}

/** Return the place of the node under a point, or -1. */
export function nodeAt(nodes: readonly Node[], view: View, x: number, y: number, isShown: (at: number) => boolean): number {
  const reach = 5;
  let best = -1;
  let nearest = Infinity;
  nodes.forEach((node, at) => {
    if (!isShown(at)) return;
    const distance = Math.hypot(node.x * view.scale + view.x - x, node.y * view.scale + view.y - y);
    if (distance <= radiusOf(node) + reach && distance < nearest) {
      best = at;
      nearest = distance;
    }
  });
  return best;
}

/** Return the first and last time at which something was learned. */
export function timeSpan(nodes: readonly Node[]): [number, number] {
  const times = nodes.map((node) => Date.parse(node.created_at));
  return [Math.min(...times), Math.max(...times, ...nodes.flatMap((node) => (node.replaced_at ? [Date.parse(node.replaced_at)] : [])))];
}
