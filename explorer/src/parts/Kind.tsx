/** What an item is: a dot in the colour of its kind, and the word. */
import { words } from "../format";

export function Kind({ kind }: { kind: string }) {
  return (
    <span className="kind" data-kind={kind}>
      {words(kind)}
    </span>
  );
}

/** How strong a number between 0 and 1 is, as a bar of five steps. */
export function Strength({ value, label }: { value: number; label: string }) {
  const steps = Math.max(1, Math.round(value * 5));
  return (
    <span className="strength" title={`${label} ${value.toFixed(2)}`}>
      <span className="sr-only">{`${label} ${value.toFixed(2)}`}</span>
      {[1, 2, 3, 4, 5].map((step) => (
        <i key={step} data-on={step <= steps || undefined} />
      ))}
    </span>
  );
}
