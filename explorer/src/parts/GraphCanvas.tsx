/** The graph on a canvas: pan, zoom, hover, click, and the same with keys. */
import { useEffect, useRef, useState, type KeyboardEvent, type PointerEvent } from "react";
import type { Api } from "../api";
import { centre, fit, nodeAt, zoom, type Presence, type Size, type View } from "../graph";
import { paint } from "../graphPaint";
import { useShownTheme } from "../theme";

type Graph = Api<"KnowledgeGraph">;
type Properties = {
  graph: Graph;
  presence: Presence[];
  colour: "relevance" | "kind";
  chosen: number;
  choose: (at: number) => void;
  open: (at: number) => void;
};

const PAN = 60;

export function GraphCanvas({ graph, presence, colour, chosen, choose, open }: Properties) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const size = useSize(canvas);
  useShownTheme(); // the canvas is painted anew in other colours
  const [view, setView] = useState<View>();
  const [hover, setHover] = useState(-1);
  const drag = useRef<{ x: number; y: number; moved: boolean } | undefined>(undefined);
  const shown = view ?? (size ? fit(size) : undefined);
  const isShown = (at: number) => presence[at] !== "absent";

  useEffect(() => {
    if (size && shown && canvas.current)
      paint(canvas.current, { graph, presence, colour, hover, chosen, size, view: shown });
  });
  useEffect(() => {
    const node = graph.nodes[chosen];
    if (!node || !size) return;
    setView((now) => {
      const base = now ?? fit(size);
      const x = node.x * base.scale + base.x;
      const y = node.y * base.scale + base.y;
      const isInside = x > 40 && y > 40 && x < size.width - 40 && y < size.height - 40;
      return isInside ? base : centre(node, base, size);
    });
  }, [chosen, graph, size]);
  useWheel(canvas, (event) => {
    if (!shown || !size) return;
    const box = canvas.current?.getBoundingClientRect();
    setView(
      zoom(
        shown,
        Math.exp(-event.deltaY * 0.0015),
        event.clientX - (box?.left ?? 0),
        event.clientY - (box?.top ?? 0),
        fit(size).scale,
      ),
    );
  });

  function place(event: PointerEvent): { x: number; y: number } {
    const box = event.currentTarget.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }
  function onMove(event: PointerEvent<HTMLCanvasElement>): void {
    if (!shown) return;
    const at = place(event);
    if (drag.current) {
      const { x, y } = drag.current;
      if (Math.hypot(at.x - x, at.y - y) > 3) drag.current.moved = true;
      setView({ ...shown, x: shown.x + at.x - x, y: shown.y + at.y - y });
      drag.current = { ...at, moved: drag.current.moved };
    } else setHover(nodeAt(graph.nodes, shown, at.x, at.y, isShown));
  }
  function onUp(event: PointerEvent<HTMLCanvasElement>): void {
    const moved = drag.current?.moved;
    drag.current = undefined;
    if (moved || !shown) return;
    const at = place(event);
    const found = nodeAt(graph.nodes, shown, at.x, at.y, isShown);
    if (found >= 0 && found === chosen) open(found);
    else choose(found);
  }
  function onKeyDown(event: KeyboardEvent): void {
    if (!shown || !size) return;
    const moves: Record<string, [number, number]> = {
      ArrowLeft: [PAN, 0],
      ArrowRight: [-PAN, 0],
      ArrowUp: [0, PAN],
      ArrowDown: [0, -PAN],
    };
    const step = moves[event.key];
    const factor = { "+": 1.3, "=": 1.3, "-": 1 / 1.3 }[event.key];
    if (step) setView({ ...shown, x: shown.x + step[0], y: shown.y + step[1] });
    else if (factor) setView(zoom(shown, factor, size.width / 2, size.height / 2, fit(size).scale));
    else if (event.key === "0") setView(fit(size));
    else if (event.key === "Enter" && chosen >= 0) open(chosen);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
  return (
    <canvas
      ref={canvas}
      className="graph-canvas"
      tabIndex={0}
      role="img"
      data-hover={hover >= 0 || undefined}
      aria-label={`Graph of ${graph.nodes.length} fragments. Arrow keys move, plus and minus zoom, zero shows all. The list beside it has the same fragments.`}
      onPointerDown={(event) => {
        drag.current = { ...place(event), moved: false };
        event.currentTarget.setPointerCapture(event.pointerId);
      }}
      onPointerMove={onMove}
      onPointerUp={onUp}
      onPointerLeave={() => setHover(-1)}
      onKeyDown={onKeyDown}
    />
  );
}

function useSize(element: React.RefObject<HTMLElement | null>): Size | undefined {
  const [size, setSize] = useState<Size>();
  useEffect(() => {
    const observed = element.current;
    if (!observed) return undefined;
    const observer = new ResizeObserver(
      ([entry]) => entry && setSize({ width: entry.contentRect.width, height: entry.contentRect.height }),
    );
    observer.observe(observed);
    return () => observer.disconnect();
  }, [element]);
  return size;
}

/** Listen to the wheel; the page does not scroll under the graph. */
function useWheel(element: React.RefObject<HTMLElement | null>, act: (event: WheelEvent) => void): void {
  const latest = useRef(act);
  useEffect(() => {
    latest.current = act;
  });
  useEffect(() => {
    const observed = element.current;
    const listener = (event: WheelEvent) => {
      event.preventDefault();
      latest.current(event);
    };
    observed?.addEventListener("wheel", listener, { passive: false });
    return () => observed?.removeEventListener("wheel", listener);
  }, [element]);
}
