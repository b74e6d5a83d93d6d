/** One result of a search: what it says, where it is from, and why it is here. */
import type { Api } from "../api";
import { itemPath } from "../router";
import { plainLine } from "../markup";
import { Kind } from "./Kind";
import { Link } from "./Link";
import { Marked } from "./Markup";
import { Time } from "./Time";

type Properties = {
  hit: Api<"Hit">;
  pattern: RegExp | null;
  project: string;
  focused: () => void;
  active: boolean;
};

const TYPE_NAMES: Record<string, string> = { distillation: "log", message: "message" };

export function HitRow({ hit, pattern, project, focused, active }: Properties) {
  const kind = hit.type === "fragment" ? (hit.kind ?? "fact") : (TYPE_NAMES[hit.type] ?? hit.type);
  return (
    <li>
      <Link row to={itemPath(hit)} className="hit" onFocus={focused} data-active={active || undefined}>
        {hit.question && (
          <span className="hit-question">
            <span className="sr-only">Question: </span>
            {plainLine(hit.question)}
          </span>
        )}
        <span className="hit-text">
          <Marked text={excerpt(hit)} pattern={pattern} />
        </span>
        {hit.replaced && <Replacement replaced={hit.replaced} />}
        <span className="meta">
          <Kind kind={kind} />
          {hit.type === "message" && hit.role && <span>{hit.role}</span>}
          {project && <span>{project}</span>}
          {hit.origin !== "user" && hit.origin !== "assistant" && hit.origin && (
            <span className="tag">from {hit.origin}</span>
          )}
          <Time at={hit.created_at} />
          <span className="hit-why">{hit.why}</span>
        </span>
      </Link>
    </li>
  );
}

const HOW: Record<string, string> = { partly: "Partly replaced by", may_replace: "Maybe replaced by" };

function Replacement({ replaced }: { replaced: NonNullable<Api<"Hit">["replaced"]> }) {
  return (
    <span className="hit-replaced">
      {HOW[replaced.how] ?? "Replaced by"} “{plainLine(replaced.by)}” · <Time at={replaced.at} />
    </span>
  );
}

/** Return a text on a few lines; its structure is shown when it is opened. */
function excerpt(hit: Api<"Hit">): string {
  return hit.text
    .replace(/```\w*|\*\*|`|^#+\s/gm, "")
    .replace(/\n{2,}/g, "\n")
    .replace(/^…+/, "…")
    .trim();
}
