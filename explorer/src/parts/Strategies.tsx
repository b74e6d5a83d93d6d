/** Ways to choose memories for a task, and how their sessions went. */
import type { Api } from "../api";
import { formatCount, formatShare } from "../format";
import { useQuery } from "../query";
import { ScrollTable } from "./ScrollTable";
import { FailureNote, Skeleton } from "./states";

/** Intervals come as objects, as in the report of the tool. */
type Overview = Omit<Api<"StrategyOverview">, "reports"> & { reports: Api<"ReportedProfile">[] };

export function Strategies() {
  const report = useQuery<Overview>({ path: "/strategies" });
  if (report.error) return <FailureNote failure={report.error} retry={report.reload} />;
  if (!report.data) return <Skeleton rows={6} />;
  const { descriptions, rollbacks } = report.data;
  return (
    <>
      <p className="quiet">
        Sessions get a profile{" "}
        {report.data.mode === "fixed"
          ? "by setting"
          : report.data.mode === "random"
            ? "at random"
            : "by what has worked"}
        . Intervals are of 95 %.{rollbacks > 0 && ` ${rollbacks} rolled back.`} <code>lore strategy</code>{" "}
        changes that.
      </p>
      <ScrollTable label="Strategies">
        <thead>
          <tr>
            {["Profile", "Share", "Sessions", "Completed", "Used", "Satisfaction", "Tokens", "Latency"].map(
              (name) => (
                <th key={name} scope="col">
                  {name}
                </th>
              ),
            )}
          </tr>
        </thead>
        <tbody>
          {report.data.reports.map((one) => (
            <tr key={one.profile}>
              <td>
                {one.profile}
                <span className="strategy-about">{descriptions[one.profile]}</span>
              </td>
              <td>{formatShare(one.share)}</td>
              <td>{formatCount(one.sessions)}</td>
              <Interval figure={one.completion} share />
              <Interval figure={one.used} share />
              <Interval figure={one.satisfaction} share />
              <Interval figure={one.tokens} />
              <Interval figure={one.latency_ms} unit=" ms" />
            </tr>
          ))}
        </tbody>
      </ScrollTable>
    </>
  );
}

/** A figure with its interval; shares also as a line from 0 to 1. */
function Interval({
  figure,
  share = false,
  unit = "",
}: {
  figure: Api<"Figure"> | null;
  share?: boolean;
  unit?: string;
}) {
  if (!figure) return <td className="quiet">–</td>;
  const text = share ? formatShare(figure.value) : `${formatCount(Math.round(figure.value))}${unit}`;
  const range = share
    ? `${formatShare(figure.low)} to ${formatShare(figure.high)}`
    : `${formatCount(Math.round(figure.low))} to ${formatCount(Math.round(figure.high))}`;
  return (
    <td title={`${range}, of ${figure.n}`}>
      {text}
      {share && (
        <svg className="interval" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
          <rect x="0" y="3.5" width="100" height="1" />
          <rect
            x={figure.low * 100}
            y="2"
            width={Math.max((figure.high - figure.low) * 100, 1)}
            height="4"
            className="interval-range"
          />
        </svg>
      )}
      <span className="sr-only">{range}</span>
    </td>
  );
}
