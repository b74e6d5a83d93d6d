/** The forgetting curve of a fragment: what it was, is, and will be if nobody reads it. */
import type { Api } from "../api";
import { formatDay, formatTime } from "../format";
import { useQuery } from "../query";
import { FailureNote, Skeleton } from "./states";

type Curve = Api<"RelevanceCurve">;

const WIDTH = 320;
const HEIGHT = 120;
const BOTTOM = 100;
const TOP = 8;
/** A weak fragment does not look strong. */
const LEAST_TOP = 0.4;
/** A label this near another one would cover it. */
const LABEL_WIDTH = 56;

export function RelevanceChart({ id }: { id: string }) {
  const curve = useQuery<Curve>({ path: `/fragments/${encodeURIComponent(id)}/relevance` });
  if (curve.error) return <FailureNote failure={curve.error} />;
  return (
    <figure className="relevance" aria-label="Relevance over time">
      <figcaption>
        <h2>Relevance</h2>
        {curve.data && <strong className="number">{curve.data.relevance.toFixed(2)}</strong>}
      </figcaption>
      {curve.data ? <CurveView curve={curve.data} /> : <Skeleton rows={3} />}
    </figure>
  );
}

function CurveView({ curve }: { curve: Curve }) {
  const times = curve.points.map((point) => Date.parse(point.at));
  const first = times[0] ?? 0;
  const span = Math.max((times.at(-1) ?? 1) - first, 1);
  const x = (time: number) => ((time - first) / span) * WIDTH;
  const most = Math.max(LEAST_TOP, ...curve.points.map((point) => point.relevance), curve.relevance) * 1.1;
  const y = (value: number) => BOTTOM - Math.min(value / most, 1) * (BOTTOM - TOP);
  const line = (basis: string[]) =>
    curve.points
      .flatMap((point, at) =>
        basis.includes(point.basis)
          ? [`${x(times[at] ?? 0).toFixed(1)},${y(point.relevance).toFixed(1)}`]
          : [],
      )
      .join(" ");
  const now = x(Date.parse(curve.now));
  const last = curve.points.at(-1);
  return (
    <>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={describe(curve)}>
        <line className="chart-axis" x1="0" x2={WIDTH} y1={BOTTOM} y2={BOTTOM} />
        <line className="chart-limit" x1="0" x2={WIDTH} y1={y(curve.visible)} y2={y(curve.visible)} />
        <polyline className="chart-line" data-basis="estimated" points={line(["estimated"])} />
        <polyline className="chart-line" points={line(["known"])} />
        <polyline className="chart-line" data-basis="forecast" points={line(["forecast"])} />
        <line className="chart-now" x1={now} x2={now} y1={TOP} y2={BOTTOM} />
        <circle className="chart-dot" cx={now} cy={y(curve.relevance)} r="3.5" />
        {now > LABEL_WIDTH && (
          <text x="0" y={HEIGHT - 5}>
            {formatDay(curve.points[0]?.at ?? curve.now)}
          </text>
        )}
        <text
          x={Math.min(now, WIDTH - LABEL_WIDTH - 20)}
          y={HEIGHT - 5}
          textAnchor={now < 12 ? "start" : "middle"}
        >
          now
        </text>
        {last && (
          <text x={WIDTH} y={HEIGHT - 5} textAnchor="end">
            {formatDay(last.at)}
          </text>
        )}
        <text x={WIDTH} y={y(curve.visible) - 4} textAnchor="end">
          hidden below {curve.visible.toFixed(2)}
        </text>
      </svg>
      <p className="quiet small">{describe(curve)}</p>
    </>
  );
}

function describe(curve: Curve): string {
  if (curve.relevance < curve.visible) return "It has faded: agents no longer get it unasked.";
  if (!curve.hidden_at) return "It stays visible for the next months, even if nobody reads it.";
  return `If nobody reads it, it fades from view on ${formatTime(curve.hidden_at).replace(/,[^,]*$/, "")}.`;
}
