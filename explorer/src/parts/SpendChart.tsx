/** Cost over time, stacked by group, with what it would have cost without Lore above. */
import type { Api } from "../api";
import { formatDay, formatUsd } from "../format";
import { AxisDates, AxisLines, AxisValues } from "./Axis";

type Series = Api<"SpendSeries">;

const HEIGHT = 160;
/** Groups with a colour of their own, the most expensive first; the others share the last. */
const COLOURS = 6;
const STEP_MS = { day: 86_400_000, hour: 3_600_000 };

export function SpendChart({ series }: { series: Series }) {
  const names = series.groups.slice(0, COLOURS - 1).map((one) => one.name);
  const step = STEP_MS[series.step];
  const start = Math.floor(Date.parse(series.since) / step);
  const count = Math.max(Math.floor(Date.parse(series.until) / step) - start + 1, 1);
  const columns = Map.groupBy(series.points, (one) => Math.floor(Date.parse(one.at) / step) - start);
  const tops = [...columns.values()].map((points) =>
    points.reduce((sum, one) => sum + Math.max(one.without_usd, one.usd), 0),
  );
  const most = Math.max(...tops, 1e-9);
  const width = 100 / count;
  return (
    <figure className="chart spend-chart">
      <AxisValues most={most} height={HEIGHT} format={formatUsd} />
      <svg
        viewBox={`0 0 100 ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`Cost by ${series.step}, at most ${formatUsd(most)}`}
      >
        <AxisLines most={most} height={HEIGHT} />
        {[...columns].map(([at, points]) => (
          <Column
            key={at}
            x={at * width}
            width={width}
            points={points}
            names={names}
            most={most}
            step={series.step}
          />
        ))}
        <line className="chart-axis" x1="0" x2="100" y1={HEIGHT} y2={HEIGHT} />
      </svg>
      <AxisDates count={count} label={(column) => labelOf((start + column) * step, series.step)} />
      <figcaption className="legend">
        {names.map((name, at) => (
          <span key={name} data-part="group" data-series={at}>
            {series.groups[at]?.label || name || "other"}
          </span>
        ))}
        {series.total.saved_usd > 0 && <span data-part="without">without Lore</span>}
      </figcaption>
    </figure>
  );
}

/** Return the day or the hour of a column. */
function labelOf(time: number, step: Series["step"]): string {
  const at = new Date(time);
  return step === "hour" ? `${at.getHours()}:00` : formatDay(at.toISOString());
}

type ColumnProperties = {
  x: number;
  width: number;
  points: Series["points"];
  names: string[];
  most: number;
  step: string;
};

function Column({ x, width, points, names, most, step }: ColumnProperties) {
  const usd = points.reduce((sum, one) => sum + one.usd, 0);
  const without = points.reduce((sum, one) => sum + Math.max(one.without_usd, one.usd), 0);
  const bar = width * 0.74;
  const order = (group: string) => (names.includes(group) ? names.indexOf(group) : COLOURS - 1);
  let top = HEIGHT;
  return (
    <g>
      <title>{`${formatDay(points[0]?.at ?? "")}${step === "hour" ? `, ${new Date(points[0]?.at ?? "").getHours()}:00` : ""}: ${formatUsd(usd)}, saved ${formatUsd(without - usd)}`}</title>
      <rect className="bar-back" x={x} width={width} y="0" height={HEIGHT} />
      <rect
        className="bar-without"
        x={x}
        width={bar}
        y={HEIGHT - (without / most) * HEIGHT}
        height={(without / most) * HEIGHT}
      />
      {points
        .toSorted((a, b) => order(a.group) - order(b.group))
        .map((one) => {
          const height = (one.usd / most) * HEIGHT;
          top -= height;
          return (
            <rect key={one.group} data-series={order(one.group)} x={x} width={bar} y={top} height={height} />
          );
        })}
    </g>
  );
}
