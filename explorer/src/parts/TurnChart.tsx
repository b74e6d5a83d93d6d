/** Where the tokens and the money went: one bar for each turn. */
import type { Api } from "../api";
import { formatShort, formatUsd } from "../format";
import { navigate, paths } from "../router";

type Turn = Api<"Turn">;

const HEIGHT = 72;
/** Few turns make no broad bars. */
const WIDEST = 64;

/** The parts of a bar, from the bottom. */
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

export function TurnChart({ turns, session }: { turns: Turn[]; session: string }) {
  const most = Math.max(...turns.map(total), 0);
  if (!most || turns.length < 2) return null;
  const width = 100 / turns.length;
  const gap = Math.min(width * 0.2, 0.4);
  return (
    <figure className="turn-chart" style={{ maxWidth: Math.max(turns.length * WIDEST, 480) }}>
      <svg
        viewBox={`0 0 100 ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`Tokens of ${turns.length} turns, at most ${formatShort(most)} in one`}
      >
        {turns.map((turn, at) => (
          <Bar
            key={turn.number}
            turn={turn}
            x={at * width}
            width={width - gap}
            most={most}
            open={() => navigate(paths.session(session, { turn: String(turn.number) }), { replace: true })}
          />
        ))}
      </svg>
      <figcaption className="legend">
        {PARTS.map(([name]) => (
          <span key={name} data-part={name}>
            {NAMES[name]}
          </span>
        ))}
        <span className="push">tokens by turn, at most {formatShort(most)}</span>
      </figcaption>
    </figure>
  );
}

type BarProperties = { turn: Turn; x: number; width: number; most: number; open: () => void };

function Bar({ turn, x, width, most, open }: BarProperties) {
  let top = HEIGHT;
  return (
    <g className="turn-bar" onClick={open}>
      <title>{`Turn ${turn.number}: ${formatShort(total(turn))} tokens, ${formatUsd(turn.usd)}`}</title>
      <rect className="bar-back" x={x} width={width} y="0" height={HEIGHT} />
      {PARTS.map(([name, count]) => {
        const height = (count(turn) / most) * HEIGHT;
        top -= height;
        return <rect key={name} data-part={name} x={x} width={width} y={top} height={height} />;
      })}
    </g>
  );
}
