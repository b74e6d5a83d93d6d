/** Round values and dates for the axes of charts. */

/** Return round values below the largest one, at most a few, for lines across a chart. */
export function roundSteps(most: number, count = 3): number[] {
  if (!(most > 0)) return [];
  const rough = most / (count + 0.5);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 2.5, 5, 10].find((one) => one * power >= rough * 0.999) ?? 10) * power;
  const steps: number[] = [];
  for (let at = 1; at * step < most * 0.97; at += 1) steps.push(Number((at * step).toPrecision(6)));
  return steps;
}

/** A label that begins further to the right would be cut off. */
const LAST_SHARE = 0.93;

/** Return the places of some columns of a chart, evenly spaced and never too near its end. */
export function spacedColumns(count: number, most: number): number[] {
  const step = Math.max(Math.ceil(count / most), 1);
  const places: number[] = [];
  for (let at = 0; at < count && (at === 0 || at / count < LAST_SHARE); at += step) places.push(at);
  return places;
}
