/** Where the money and the tokens went: for each turn its cost, its tokens and its prompt layer. */
import type { Api } from "../api";
import { formatCount, formatShort, formatUsd } from "../format";
import { navigate, paths } from "../router";
import { AxisLines, AxisValues } from "./Axis";
import { LAYERS } from "./TurnView";

type Turn = Api<"Turn">;

const COST = 64;
const TOKENS = 64;
const LAYER = 8;
/** Few turns make no broad bars. */
const WIDEST = 72;
const NARROWEST_CHART = 560;

/** The parts of a bar of tokens, from the bottom. */
const PARTS = [
  ["cached", (turn: Turn) => turn.tokens.cache_read_tokens],
  [
    "fresh",
    (turn: Turn) =>
      turn.tokens.fresh_tokens + turn.tokens.cache_write_tokens + turn.tokens.cache_write_1h_tokens,
  ],
  ["output", (turn: Turn) => turn.tokens.output_tokens],
] as const;

const NAMES = { cached: "read from the cache", fresh: "fresh input", output: "output" };

function total(turn: Turn): number {
  return PARTS.reduce((sum, [, count]) => sum + count(turn), 0);
}

type Properties = { turns: Turn[]; session: string; count: number };

/** `count` is the number of all turns; they are loaded page by page. */
export function TurnChart({ turns, session, count }: Properties) {
  const most = Math.max(...turns.map(total), 0);
  if (!most || turns.length < 2) return null;
  const dearest = Math.max(...turns.map((turn) => Math.max(turn.usd, turn.without_usd)), 0);
  const hasSavings = turns.some((turn) => turn.without_usd - turn.usd > 0.0005);
  const hasLayers = turns.some((turn) => (turn.layer ?? 0) > 0);
  const open = (turn: Turn) =>
    navigate(paths.session(session, { turn: String(turn.number) }), { replace: true });
  const bars = { turns, open };
  return (
    <figure
      className="turn-chart"
      style={{ maxWidth: Math.max(turns.length * WIDEST, NARROWEST_CHART) }}
      aria-label="Cost and tokens by turn"
    >
      {dearest > 0 && (
        <Panel
          name="Cost"
          label={`Cost of ${turns.length} turns, at most ${formatUsd(dearest)} for one`}
          most={dearest}
          height={COST}
          format={formatUsd}
        >
          <Bars {...bars} height={COST} parts={(turn) => costParts(turn, dearest)} />
        </Panel>
      )}
      <Panel
        name="Tokens"
        label={`Tokens of ${turns.length} turns, at most ${formatShort(most)} in one`}
        most={most}
        height={TOKENS}
        format={formatShort}
      >
        <Bars {...bars} height={TOKENS} parts={(turn) => tokenParts(turn, most)} />
      </Panel>
      {hasLayers && (
        <Panel name="Layer" label="Prompt layer of each turn" most={0} height={LAYER} format={formatShort}>
          <Bars {...bars} height={LAYER} parts={layerParts} />
        </Panel>
      )}
      <figcaption className="legend">
        {dearest > 0 && <span data-part="cost">cost</span>}
        {PARTS.map(([name]) => (
          <span key={name} data-part={name}>
            {NAMES[name]}
          </span>
        ))}
        {hasSavings && <span data-part="without">without Lore</span>}
        {hasLayers && <span data-part="layer">layer: stronger where more is folded</span>}
        {turns.length < count && (
          <span className="push">
            the first {formatCount(turns.length)} of {formatCount(count)} turns
          </span>
        )}
      </figcaption>
    </figure>
  );
}

type PanelProperties = {
  name: string;
  label: string;
  most: number;
  height: number;
  format: (value: number) => string;
  children: React.ReactNode;
};

function Panel({ name, label, most, height, format, children }: PanelProperties) {
  return (
    <div className="turn-panel">
      <span className="turn-panel-name" aria-hidden="true">
        {name}
      </span>
      <div className="chart">
        <AxisValues most={most} height={height} format={format} />
        <svg
          viewBox={`0 0 100 ${height}`}
          preserveAspectRatio="none"
          role="img"
          aria-label={label}
          style={{ height }}
        >
          <AxisLines most={most} height={height} />
          {children}
        </svg>
      </div>
    </div>
  );
}

/** A piece of a bar: its name, and its share of the height from one value to another. */
type Piece = { part: string; from: number; to: number; strength?: number };

function costParts(turn: Turn, most: number): Piece[] {
  const without = Math.max(turn.without_usd, turn.usd);
  return [
    { part: "without", from: turn.usd / most, to: without / most },
    { part: "cost", from: 0, to: turn.usd / most },
  ];
}

function tokenParts(turn: Turn, most: number): Piece[] {
  let from = 0;
  return PARTS.map(([part, count]) => {
    const to = from + count(turn) / most;
    const piece = { part, from, to };
    from = to;
    return piece;
  });
}

function layerParts(turn: Turn): Piece[] {
  return [{ part: "layer", from: 0, to: 1, strength: (turn.layer ?? 0) / (LAYERS.length - 1) }];
}

type BarsProperties = {
  turns: Turn[];
  height: number;
  parts: (turn: Turn) => Piece[];
  open: (turn: Turn) => void;
};

function Bars({ turns, height, parts, open }: BarsProperties) {
  const width = 100 / turns.length;
  const bar = width - Math.min(width * 0.2, 0.4);
  return turns.map((turn, at) => (
    <g key={turn.number} className="turn-bar" onClick={() => open(turn)}>
      <title>{describe(turn)}</title>
      <rect className="bar-back" x={at * width} width={bar} y="0" height={height} />
      {parts(turn).map(({ part, from, to, strength }) => (
        <rect
          key={part}
          data-part={part}
          x={at * width}
          width={bar}
          y={height * (1 - to)}
          height={height * (to - from)}
          opacity={strength === undefined ? undefined : 0.12 + strength * 0.88}
        />
      ))}
    </g>
  ));
}

function describe(turn: Turn): string {
  const layer = turn.layer === null ? "" : `, ${LAYERS[turn.layer]}`;
  return `Turn ${turn.number}: ${formatUsd(turn.usd)}, ${formatShort(total(turn))} tokens${layer}`;
}
