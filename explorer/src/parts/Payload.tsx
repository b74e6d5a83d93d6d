/** The structured part of a fragment, as a list of names and values. */
import { useState } from "react";
import { formatCount, formatDuration, words } from "../format";
import { plainLine } from "../markup";

type Properties = { payload: Record<string, unknown>; known: string[] };

/** Show what a payload has beside the texts that are shown already. */
export function Payload({ payload, known }: Properties) {
  const texts = new Set(known.map(plainLine));
  const entries = Object.entries(payload).filter(
    ([, value]) => !isEmpty(value) && !(typeof value === "string" && texts.has(plainLine(value))),
  );
  if (!entries.length) return null;
  return (
    <section className="section" aria-labelledby="payload">
      <div className="section-head">
        <h2 id="payload">Details</h2>
      </div>
      <dl className="facts payload">
        {entries.map(([name, value]) => (
          <PayloadRow key={name} name={name} value={value} />
        ))}
      </dl>
    </section>
  );
}

function isEmpty(value: unknown): boolean {
  return value === null || value === undefined || value === "" || (Array.isArray(value) && !value.length);
}

/** The end of a name whose value is in seconds. */
const SECONDS = /_s$/;

function PayloadRow({ name, value }: { name: string; value: unknown }) {
  return (
    <>
      <dt>{words(name.replace(SECONDS, ""))}</dt>
      <dd>
        {typeof value === "number" && SECONDS.test(name) ? formatDuration(value) : <Value value={value} />}
      </dd>
    </>
  );
}

/** Entries of a list that are shown at first. */
const FIRST = 8;

function List({ values }: { values: unknown[] }) {
  const [all, setAll] = useState(false);
  const left = values.length - FIRST;
  return (
    <>
      <ul className="payload-list">
        {(all ? values : values.slice(0, FIRST)).map((one, at) => (
          <li key={at}>
            <Value value={one} />
          </li>
        ))}
      </ul>
      {left > 0 && !all && (
        <button type="button" className="button plain payload-more" onClick={() => setAll(true)}>
          {formatCount(left)} more
        </button>
      )}
    </>
  );
}

function Value({ value }: { value: unknown }) {
  if (Array.isArray(value)) return <List values={value} />;
  if (value === null || typeof value !== "object") return <span dir="auto">{plainValue(value)}</span>;
  const record = value as Record<string, unknown>;
  return typeof record.action === "string" ? (
    <ActionLine action={record} />
  ) : (
    <PayloadRecord record={record} />
  );
}

/** A call of a tool on one line; what went well needs no word. */
function ActionLine({ action }: { action: Record<string, unknown> }) {
  const { action: name, target, result } = action;
  return (
    <span className="action-line">
      <span className="quiet">{String(name)}</span>
      <code dir="auto">{isEmpty(target) ? "" : plainValue(target)}</code>
      {result !== "ok" && !isEmpty(result) && (
        <span className="tag" data-tone="bad">
          {plainValue(result)}
        </span>
      )}
    </span>
  );
}

/** A record in a list: its longest text first, then the rest in a quiet line. */
function PayloadRecord({ record }: { record: Record<string, unknown> }) {
  const entries = Object.entries(record).filter(([, one]) => !isEmpty(one));
  const texts = entries.filter(([, one]) => typeof one === "string").map(([name]) => name);
  const head = LEADING.find((name) => texts.includes(name)) ?? texts[0];
  const rest = entries.filter(([name]) => name !== head);
  return (
    <span className="payload-record">
      {head && <span dir="auto">{String(record[head])}</span>}
      {rest.length > 0 && (
        <span className="meta">
          {rest.map(([name, one]) => (
            <span key={name}>
              {words(name)} <span className="payload-value">{plainValue(one)}</span>
            </span>
          ))}
        </span>
      )}
    </span>
  );
}

/** Names of the text that says what a record is about. */
const LEADING = ["goal", "target", "error", "title", "name", "text"];

function plainValue(value: unknown): string {
  if (Array.isArray(value)) return value.map(plainValue).join(", ");
  if (typeof value === "number") return formatCount(value);
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "string") return value.replace(/`([^`\n]*)`/g, "$1");
  return value !== null && typeof value === "object" ? JSON.stringify(value) : String(value);
}
