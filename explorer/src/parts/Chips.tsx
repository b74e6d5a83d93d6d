/** Filters: a choice that shows as a word, and a row of exclusive buttons. */
import { Icon } from "./Icon";

export type Option = readonly [value: string, name: string];

type ChoiceProperties = {
  label: string;
  value: string;
  options: readonly Option[];
  change: (value: string) => void;
};

/** A filter with a native list behind it, so that every device and screen reader knows it. */
export function Choice({ label, value, options, change }: ChoiceProperties) {
  const name = options.find(([one]) => one === value)?.[1] ?? value;
  return (
    <span className="chip" data-on={value ? "" : undefined}>
      <span aria-hidden="true">{value ? `${label}: ${name}` : label}</span>
      <Icon name="down" />
      <select aria-label={label} value={value} onChange={(event) => change(event.target.value)}>
        <option value="">Any</option>
        {options.map(([one, text]) => (
          <option key={one} value={one}>
            {text}
          </option>
        ))}
      </select>
    </span>
  );
}

export function Segments({ label, value, options, change }: ChoiceProperties) {
  return (
    <div className="segments" role="group" aria-label={label}>
      {options.map(([one, name]) => (
        <button key={one} type="button" aria-pressed={one === value} onClick={() => change(one)}>
          {name}
        </button>
      ))}
    </div>
  );
}
