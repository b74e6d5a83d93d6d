/** What was learned and lost on each day: bars above and below a line. */
import type { Api } from "../api";
import { formatCount, formatDay, plural } from "../format";
import { AxisDates, AxisLines, AxisValues } from "./Axis";

type Day = Api<"LearnedDay">;

const UP = 64;
const DOWN = 28;

function lost(day: Day): number {
  return (day.replaced ?? 0) + (day.deleted ?? 0) + (day.forgotten ?? 0);
}

export function DayChart({ days }: { days: Day[] }) {
  if (days.length < 2) return null;
  const sorted = [...days].sort((a, b) => a.day.localeCompare(b.day));
  const most = Math.max(...sorted.map((day) => day.learned ?? 0), 1);
  const mostLost = Math.max(...sorted.map(lost), 1);
  const first = Date.parse(sorted[0]?.day ?? "");
  const count = Math.round((Date.parse(sorted.at(-1)?.day ?? "") - first) / 86_400_000) + 1;
  const width = 100 / count;
  const bar = Math.max(width * 0.72, 0.15);
  return (
    <figure className="chart day-chart">
      <AxisValues most={most} height={UP} format={formatCount} />
      <svg
        viewBox={`0 0 100 ${UP + DOWN + 2}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`Learned and lost on ${plural(sorted.length, "day")}, at most ${most} learned on one`}
      >
        <AxisLines most={most} height={UP} />
        <line className="chart-axis" x1="0" x2="100" y1={UP + 1} y2={UP + 1} />
        {sorted.map((day) => {
          const x = ((Date.parse(day.day) - first) / 86_400_000) * width;
          const height = ((day.learned ?? 0) / most) * UP;
          return (
            <g key={day.day}>
              <title>{`${formatDay(day.day)}: ${day.learned ?? 0} learned, ${day.changed ?? 0} changed, ${lost(day)} replaced or gone`}</title>
              <rect className="bar-back" x={x} width={width} y="0" height={UP + DOWN} />
              <rect className="bar-learned" x={x} width={bar} y={UP - height} height={height} />
              <rect
                className="bar-lost"
                x={x}
                width={bar}
                y={UP + 2}
                height={(lost(day) / mostLost) * DOWN}
              />
            </g>
          );
        })}
      </svg>
      <AxisDates
        count={count}
        label={(column) => formatDay(new Date(first + column * 86_400_000).toISOString())}
      />
      <figcaption className="legend">
        <span data-part="learned">learned</span>
        <span data-part="lost">replaced, deleted or forgotten</span>
      </figcaption>
    </figure>
  );
}
