/** What hangs on a fragment: more detail below it, and fragments it is linked with. */
import type { Api } from "../api";
import { plural, words } from "../format";
import { plainLine } from "../markup";
import { usePages } from "../query";
import { paths, withParameters } from "../router";
import { Kind } from "./Kind";
import { Link } from "./Link";
import { More } from "./More";

type Linked = Api<"LinkedFragment">;
type Title = Api<"Title">;

/** Names of edges, as seen from their start and from their end. */
const NAMES: Record<string, [string, string]> = {
  associative: ["related", "related"],
  supersedes: ["replaces", "replaced by"],
  derived_from: ["derived from", "source of"],
  elaborates: ["elaborates", "elaborated by"],
  example_of: ["example of", "has the example"],
  supports: ["supports", "supported by"],
  temporal: ["after", "before"],
};

function edgeName(edge: Linked): string {
  return NAMES[edge.kind]?.[edge.direction === "out" ? 0 : 1] ?? words(edge.kind);
}

export function FragmentLinks({ reading }: { reading: Api<"Reading"> }) {
  const edges = usePages<Linked>(
    { path: `/fragments/${encodeURIComponent(reading.id)}/edges`, query: { limit: 50 } },
    (one) => one.direction + one.kind + one.other.id,
  );
  const shown = edges.items.filter((one) => one.kind !== "hierarchical");
  const children = reading.children ?? [];
  if (!children.length && !shown.length) return null;
  return (
    <section className="section" aria-labelledby="links">
      <div className="section-head">
        <h2 id="links">Connections</h2>
        <p>
          <Link to={withParameters("/graph", { focus: reading.id })}>Show in the graph</Link>
          {children.length > 0 && (
            <>
              {" "}
              · <Link to={withParameters("/", { under: reading.id })}>Search below it</Link>
            </>
          )}
        </p>
      </div>
      <ul className="rows">
        {children.map((child) => (
          <LinkedRow key={child.id} relation="more detail" title={child} />
        ))}
        {shown.map((edge) => (
          <LinkedRow
            key={edge.direction + edge.kind + edge.other.id}
            relation={edgeName(edge)}
            title={edge.other}
            note={edge.note}
          />
        ))}
      </ul>
      <More more={edges.more} loading={false} />
    </section>
  );
}

function LinkedRow({ relation, title, note }: { relation: string; title: Title; note?: string }) {
  return (
    <li>
      <Link row to={paths.fragment(title.id)} className="row" title={note || undefined}>
        <span className="link-relation">{relation}</span>
        <span className="row-title">{plainLine(title.title)}</span>
        {title.deleted && <span className="tag">deleted</span>}
        {Boolean(title.children) && (
          <span className="row-end">{plural(title.children ?? 0, "child", "children")}</span>
        )}
        <span className="row-end">
          <Kind kind={title.kind} />
        </span>
      </Link>
    </li>
  );
}
