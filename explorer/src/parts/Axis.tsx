/** Labels of a chart's axes, beside the drawing, which is stretched to the page. */
import { roundSteps, spacedColumns } from "../scale";

/** Lines across a chart are this many at most, and dates below it. */
const LINES = 3;
const DATES = 7;

type Values = { most: number; height: number; format: (value: number) => string };

/** Values at lines across a chart; the lines themselves are `AxisLines` in the drawing. */
export function AxisValues({ most, height, format }: Values) {
  return (
    <div className="axis-values" aria-hidden="true">
      {roundSteps(most, LINES).map((value) => (
        <span key={value} style={{ top: height * (1 - value / most) }}>
          {format(value)}
        </span>
      ))}
    </div>
  );
}

/** Lines across a drawing whose units are pixels in height. */
export function AxisLines({ most, height }: { most: number; height: number }) {
  return roundSteps(most, LINES).map((value) => {
    const y = height * (1 - value / most);
    return <line key={value} className="chart-grid" x1="0" x2="100" y1={y} y2={y} />;
  });
}

/** Dates below the columns of a chart. */
export function AxisDates({ count, label }: { count: number; label: (column: number) => string }) {
  return (
    <div className="axis-dates" aria-hidden="true">
      {spacedColumns(count, DATES).map((column) => (
        <span key={column} style={{ left: `${(column / count) * 100}%` }}>
          {label(column)}
        </span>
      ))}
    </div>
  );
}
