/** Spend: what models cost, what memory saved, and how much of the budget is left. */
import type { Api } from "../api";
import { formatCount, formatDuration, formatShare, formatShort, formatUsd, plural } from "../format";
import { Choice, Segments } from "../parts/Chips";
import { ScrollTable } from "../parts/ScrollTable";
import { SpendChart } from "../parts/SpendChart";
import { Command, Empty, FailureNote, Skeleton } from "../parts/states";
import { useQuery } from "../query";
import { useParameters } from "../router";
import "../styles/spend.css";
import { useTitle } from "../title";

type Series = Api<"SpendSeries">;

const TIMES = [
  ["1 day ago", "last day"],
  ["1 week ago", "last week"],
  ["1 month ago", "last 30 days"],
  ["3 months ago", "last 90 days"],
] as const;
const GROUPS = [
  ["model", "By model"],
  ["project", "By project"],
] as const;

export default function Spend() {
  useTitle("Spend");
  const [values, change] = useParameters();
  const since = values.get("since") || "1 month ago";
  const group = values.get("by") || "model";
  const by = since === "1 day ago" ? "hour" : "day";
  const spend = useQuery<Series>({ path: "/spend/series", query: { since, by, group } });
  return (
    <div className="page spend">
      <header className="page-head">
        <h1>Spend</h1>
        <p>what models cost, and what memory saved</p>
        <span className="push chips">
          <Segments
            label="Group"
            value={group}
            options={GROUPS}
            change={(chosen) => change({ by: chosen })}
          />
          <Choice label="Time" value={since} options={TIMES} change={(chosen) => change({ since: chosen })} />
        </span>
      </header>
      {spend.error && <FailureNote failure={spend.error} retry={spend.reload} />}
      {!spend.data && !spend.error && <Skeleton rows={6} tall />}
      {spend.data && <SpendView series={spend.data} />}
    </div>
  );
}

function SpendView({ series }: { series: Series }) {
  const { total } = series;
  if (!total.requests && !total.background) {
    return (
      <>
        <Today series={series} />
        <Empty title="No call to a model has been counted in this time.">
          <p>
            Lore works without a model, at no cost. What agents spend is counted when they go through the
            gateway:
          </p>
          <Command>lore gateway</Command>
        </Empty>
        <Economics economics={series.economics} />
      </>
    );
  }
  const input = series.points.reduce((sum, one) => sum + one.input_tokens, 0);
  const cached = series.points.reduce((sum, one) => sum + one.cached_tokens, 0);
  return (
    <>
      <dl className="figures">
        <div>
          <dt>spent</dt>
          <dd>{formatUsd(total.usd)}</dd>
        </div>
        <div>
          <dt>saved</dt>
          <dd className={total.saved_usd > 0 ? "saved" : undefined}>
            {formatUsd(total.saved_usd)}
            {total.without_usd > 0 && <small> {formatShare(total.saved_usd / total.without_usd)}</small>}
          </dd>
        </div>
        <div>
          <dt>requests</dt>
          <dd>{formatCount(total.requests)}</dd>
        </div>
        <div>
          <dt>tokens in</dt>
          <dd>{formatShort(input)}</dd>
        </div>
        <div>
          <dt>read from the cache</dt>
          <dd>{input ? formatShare(cached / input) : "–"}</dd>
        </div>
        {total.delayed > 0 && (
          <div>
            <dt>throttled</dt>
            <dd>
              {total.delayed}
              <small> {formatDuration(total.delay_ms / 1000)}</small>
            </dd>
          </div>
        )}
      </dl>
      <SpendChart series={series} />
      <Today series={series} />
      <Groups series={series} />
      <Economics economics={series.economics} />
    </>
  );
}

function Today({ series }: { series: Series }) {
  const { budget, pressure } = series;
  return (
    <section className="section" aria-labelledby="today">
      <div className="section-head">
        <h2 id="today">Today</h2>
        {budget.budget_usd === null ? (
          <p>
            no budget is set: <code>lore config daily_budget 5</code>
          </p>
        ) : (
          <p>
            until {new Date(budget.until).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" })}
          </p>
        )}
      </div>
      <p className="budget-line">
        <strong>{formatUsd(budget.spent_usd)}</strong>
        {budget.budget_usd !== null && <> of {formatUsd(budget.budget_usd)}</>}
        {budget.reserved_usd > 0 && (
          <span className="quiet"> · {formatUsd(budget.reserved_usd)} reserved</span>
        )}
      </p>
      {pressure !== null && (
        <>
          <meter
            className="meter"
            min={0}
            max={1}
            low={0.7}
            high={0.9}
            optimum={0}
            value={pressure}
            aria-label="Budget pressure"
          />
          <p className="quiet small">
            Pressure {pressure.toFixed(2)}
            {series.throttle_s > 0 && `: the next request waits ${formatDuration(series.throttle_s)}`}
            {series.exceeds && ": the budget is spent"}
          </p>
        </>
      )}
    </section>
  );
}

function Groups({ series }: { series: Series }) {
  const most = Math.max(...series.groups.map((one) => one.usd), 1e-9);
  return (
    <section className="section" aria-labelledby="groups">
      <div className="section-head">
        <h2 id="groups">{series.group === "project" ? "Projects" : "Models"}</h2>
        <p>{plural(series.groups.length, "entry", "entries")}</p>
      </div>
      <ScrollTable label="Spend by group">
        <thead>
          <tr>
            <th scope="col">Name</th>
            <th scope="col" className="group-bar">
              <span className="sr-only">Share</span>
            </th>
            {["Spent", "Saved", "Requests", "In", "Out"].map((name) => (
              <th key={name} scope="col" className="amount">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {series.groups.map((one) => (
            <tr key={one.name}>
              <td className="group-name">{one.label || one.name || "other"}</td>
              <td className="group-bar">
                <span className="signal-bar">
                  <i style={{ width: `${(one.usd / most) * 100}%` }} />
                </span>
              </td>
              <td className="amount">{formatUsd(one.usd)}</td>
              <td className={one.saved_usd > 0 ? "amount saved" : "amount quiet"}>
                {one.saved_usd ? formatUsd(one.saved_usd) : "–"}
              </td>
              <td className="amount">{formatCount(one.requests)}</td>
              <td className="amount">
                {formatShort(
                  one.tokens.fresh_tokens +
                    one.tokens.cache_read_tokens +
                    one.tokens.cache_write_tokens +
                    one.tokens.cache_write_1h_tokens,
                )}
              </td>
              <td className="amount">{formatShort(one.tokens.output_tokens)}</td>
            </tr>
          ))}
        </tbody>
      </ScrollTable>
    </section>
  );
}

function Economics({ economics }: { economics: Series["economics"] }) {
  if (!economics.retrievals && !economics.layer1_loads) return null;
  return (
    <section className="section" aria-labelledby="economics">
      <div className="section-head">
        <h2 id="economics">Token economics</h2>
        <p>what memory cost agents, and spared them</p>
      </div>
      <dl className="figures">
        <div>
          <dt>retrievals</dt>
          <dd>{formatCount(economics.retrievals)}</dd>
        </div>
        <div>
          <dt>tokens to find</dt>
          <dd>{formatShort(economics.discovery_tokens)}</dd>
        </div>
        <div>
          <dt>tokens read</dt>
          <dd>{formatShort(economics.read_tokens)}</dd>
        </div>
        {economics.ratio !== null && (
          <div>
            <dt>to find, per token read</dt>
            <dd>{economics.ratio.toFixed(2)}</dd>
          </div>
        )}
        <div>
          <dt>spared against loading all</dt>
          <dd>
            {formatShort(economics.tokens_saved)}
            <small> {formatShare(economics.savings_vs_full_load / 100)}</small>
          </dd>
        </div>
        <div>
          <dt>loads: index, timeline, details</dt>
          <dd>
            {economics.layer1_loads} · {economics.layer2_loads} · {economics.layer3_loads}
          </dd>
        </div>
      </dl>
    </section>
  );
}
