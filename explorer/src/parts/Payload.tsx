/** The structured part of a fragment, as a list of names and values. */
import { words } from "../format";
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
  return value === null || value === "" || (Array.isArray(value) && !value.length);
}

function PayloadRow({ name, value }: { name: string; value: unknown }) {
  return (
    <>
      <dt>{words(name)}</dt>
      <dd>
        <Value value={value} />
      </dd>
    </>
  );
}

function Value({ value }: { value: unknown }) {
  if (Array.isArray(value))
    return (
      <ul className="payload-list">
        {value.slice(0, 100).map((one, at) => (
          <li key={at}>
            <Value value={one} />
          </li>
        ))}
      </ul>
    );
  if (value !== null && typeof value === "object") {
    return (
      <span>
        {Object.entries(value)
          .filter(([, one]) => one !== "" && one !== null)
          .map(
            ([name, one]) => `${words(name)}: ${typeof one === "object" ? JSON.stringify(one) : String(one)}`,
          )
          .join(" · ")}
      </span>
    );
  }
  return <span dir="auto">{String(value)}</span>;
}
