/** Draw the graph. */
import type { Api } from "./api";
import { radiusOf, type Presence, type Size, type View } from "./graph";
import { plainLine, shorten } from "./markup";

type Graph = Api<"KnowledgeGraph">;
type Scene = {
  graph: Graph;
  presence: Presence[];
  colour: "relevance" | "kind";
  hover: number;
  chosen: number;
  size: Size;
  view: View;
};
type Colours = Record<"paper" | "ink" | "faint" | "line" | "lineStrong" | "accent" | "warn", string> & {
  lightness: string;
  chroma: string;
  font: string;
};

/** Titles of this many of the best connected fragments are always shown. */
const LABELS = 10;
const LABEL_CHARS = 42;
/** Among more fragments than this no title finds an empty place; they are small. */
const CROWD = 300;
/** A crowd on a canvas this narrow has no room for titles, except that of the chosen one. */
const NARROW = 500;
/** Of these the first that have room get a title. */
const CANDIDATES = 80;
/** From here on a fragment has the full colour. */
const STRONG = 0.6;

const HUES: Record<string, number> = {
  fact: 240,
  decision: 295,
  preference: 345,
  pattern: 150,
  anti_pattern: 25,
  architecture: 270,
  config: 215,
  workflow: 190,
  bug_fix: 55,
  skill: 130,
  insight: 85,
};

export function paint(canvas: HTMLCanvasElement, scene: Scene): void {
  const ratio = window.devicePixelRatio || 1;
  const context = canvas.getContext("2d");
  if (!context) return;
  canvas.width = scene.size.width * ratio;
  canvas.height = scene.size.height * ratio;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  const colours = coloursOf(canvas);
  const near = neighbours(scene.graph, scene.hover >= 0 ? scene.hover : scene.chosen);
  paintEdges(context, scene, colours, near);
  paintNodes(context, scene, colours, near);
  paintLabels(context, scene, colours, [scene.hover, scene.chosen, ...namedNodes(scene, near)]);
}

function coloursOf(canvas: HTMLCanvasElement): Colours {
  const style = getComputedStyle(canvas);
  const value = (name: string) => style.getPropertyValue(name).trim();
  return {
    paper: value("--paper"),
    ink: value("--ink"),
    faint: value("--ink-3"),
    line: value("--line"),
    lineStrong: value("--line-strong"),
    accent: value("--accent"),
    warn: value("--warn"),
    lightness: value("--kind-l"),
    chroma: value("--kind-c"),
    font: style.fontFamily,
  };
}

function neighbours(graph: Graph, at: number): Set<number> | null {
  if (at < 0) return null;
  const near = new Set([at]);
  for (const edge of graph.edges) {
    if (edge.source === at) near.add(edge.target);
    if (edge.target === at) near.add(edge.source);
  }
  return near;
}

function place(scene: Scene, at: number): [number, number] {
  const node = scene.graph.nodes[at];
  return node ? [node.x * scene.view.scale + scene.view.x, node.y * scene.view.scale + scene.view.y] : [0, 0];
}

function paintEdges(
  context: CanvasRenderingContext2D,
  scene: Scene,
  colours: Colours,
  near: Set<number> | null,
): void {
  const focus = scene.hover >= 0 ? scene.hover : scene.chosen;
  for (const edge of scene.graph.edges) {
    if (scene.presence[edge.source] === "absent" || scene.presence[edge.target] === "absent") continue;
    const isNear = near !== null && (edge.source === focus || edge.target === focus);
    context.globalAlpha = near && !isNear ? 0.25 : 1;
    context.strokeStyle = isNear
      ? colours.accent
      : edge.kind === "supersedes" || edge.kind === "contradicts"
        ? colours.warn
        : colours.lineStrong;
    context.lineWidth = edge.kind === "hierarchical" ? 1.2 : 0.8;
    context.setLineDash(edge.kind === "hierarchical" || edge.kind === "supersedes" ? [] : [3, 3]);
    context.beginPath();
    context.moveTo(...place(scene, edge.source));
    context.lineTo(...place(scene, edge.target));
    context.stroke();
  }
  context.setLineDash([]);
  context.globalAlpha = 1;
}

function fillOf(node: Graph["nodes"][number], scene: Scene, colours: Colours): string {
  if (scene.colour === "kind")
    return `oklch(${colours.lightness} ${colours.chroma} ${HUES[node.kind] ?? 250})`;
  const share = Math.round(8 + Math.min(node.relevance / STRONG, 1) * 92);
  return `color-mix(in oklab, ${colours.accent} ${share}%, ${colours.lineStrong})`;
}

function paintNodes(
  context: CanvasRenderingContext2D,
  scene: Scene,
  colours: Colours,
  near: Set<number> | null,
): void {
  scene.graph.nodes.forEach((node, at) => {
    const presence = scene.presence[at];
    if (presence === "absent") return;
    const [x, y] = place(scene, at);
    if (x < -20 || y < -20 || x > scene.size.width + 20 || y > scene.size.height + 20) return;
    context.globalAlpha = near && !near.has(at) ? 0.3 : 1;
    context.beginPath();
    context.arc(x, y, radiusOf(node, scene.graph.nodes.length), 0, 2 * Math.PI);
    context.fillStyle = presence === "replaced" ? colours.paper : fillOf(node, scene, colours);
    context.fill();
    context.lineWidth = at === scene.chosen || at === scene.hover ? 2.5 : 1;
    context.strokeStyle =
      at === scene.chosen || at === scene.hover
        ? colours.ink
        : presence === "replaced"
          ? colours.warn
          : colours.paper;
    context.stroke();
  });
  context.globalAlpha = 1;
}

/** Return the nodes whose titles are shown where there is room: neighbours, or the best connected. */
function namedNodes(scene: Scene, near: Set<number> | null): number[] {
  if (near) return [...near].slice(0, LABELS);
  const degree = (at: number) => scene.graph.nodes[at]?.degree ?? 0;
  const shown = scene.graph.nodes.map((_, at) => at).filter((at) => scene.presence[at] !== "absent");
  return shown.sort((a, b) => degree(b) - degree(a)).slice(0, CANDIDATES);
}

function paintLabels(
  context: CanvasRenderingContext2D,
  scene: Scene,
  colours: Colours,
  places: number[],
): void {
  context.font = `11.5px ${colours.font}`;
  context.textBaseline = "middle";
  context.lineJoin = "round";
  const taken: [number, number, number][] = [];
  const count = scene.graph.nodes.length;
  const most = count > CROWD && scene.size.width < NARROW ? 0 : LABELS;
  const covers = (left: number, width: number, y: number, own: number) =>
    count <= CROWD &&
    scene.graph.nodes.some((one, at) => {
      if (at === own || scene.presence[at] === "absent") return false;
      const [nodeX, nodeY] = place(scene, at);
      const radius = radiusOf(one, count);
      return Math.abs(nodeY - y) < radius + 5 && nodeX + radius > left && nodeX - radius < left + width;
    });
  for (const at of new Set(places)) {
    const node = scene.graph.nodes[at];
    if (!node || scene.presence[at] === "absent") continue;
    const [x, y] = place(scene, at);
    const reach = radiusOf(node, count) + 5;
    const isFocus = at === scene.hover || at === scene.chosen;
    if (!isFocus && taken.length >= most) break;
    const isFree = (left: number, width: number) =>
      left > 4 &&
      left + width < scene.size.width - 4 &&
      !covers(left, width, y, at) &&
      !taken.some(([from, to, line]) => Math.abs(line - y) < 14 && left < to && left + width > from);
    const lengths = count > CROWD && !isFocus ? [LABEL_CHARS / 2] : [LABEL_CHARS, LABEL_CHARS / 2];
    const choices = lengths.flatMap((chars) => {
      const text = shorten(plainLine(node.title), chars);
      const width = context.measureText(text).width;
      return [x + reach, x - reach - width].map((left) => ({ text, width, left }));
    });
    const choice = choices.find(({ left, width }) => isFree(left, width)) ?? (isFocus && choices[0]);
    if (!choice) continue;
    const { text, width, left } = choice;
    taken.push([left, left + width, y]);
    context.lineWidth = 4;
    context.strokeStyle = colours.paper;
    context.strokeText(text, left, y);
    context.fillStyle = isFocus ? colours.ink : colours.faint;
    context.fillText(text, left, y);
  }
}
