/** Health: checks, jobs, indexes and what waits. */
import type { Api } from "../api";
import { formatBytes, formatCount, plural, words } from "../format";
import { ScrollTable } from "../parts/ScrollTable";
import { Command, Empty, FailureNote, Skeleton } from "../parts/states";
import { Time } from "../parts/Time";
import { useQuery } from "../query";
import "../styles/health.css";
import { useTitle } from "../title";

type Report = Api<"HealthReport">;
type Job = Api<"Job">;

const TONES: Record<string, string> = { ok: "good", fixed: "good", degraded: "warn", broken: "bad" };

export default function Health() {
  useTitle("Health");
  const health = useQuery<Report>({ path: "/health/report" });
  return (
    <div className="page health">
      <header className="page-head">
        <h1>Health</h1>
        {health.data && (
          <p>
            Lore {health.data.version}, checked <Time at={health.data.checked_at} />
          </p>
        )}
        <button type="button" className="button push" onClick={health.reload}>
          Check again
        </button>
      </header>
      {health.error && <FailureNote failure={health.error} retry={health.reload} />}
      {!health.data && !health.error && <Skeleton rows={8} />}
      {health.data && <ReportView report={health.data} />}
    </div>
  );
}

function ReportView({ report }: { report: Report }) {
  const wrong = report.checks.filter((one) => one.state === "degraded" || one.state === "broken");
  return (
    <>
      <p className="verdict" data-tone={wrong.length ? TONES[wrong[0]?.state ?? ""] : "good"}>
        {wrong.length
          ? `${plural(wrong.length, "check")} of ${report.checks.length} need attention.`
          : `All ${report.checks.length} checks pass.`}
      </p>
      {report.notice && <p className="notice">{report.notice}</p>}
      <dl className="figures">
        <div>
          <dt>size</dt>
          <dd>{formatBytes(report.stats.bytes)}</dd>
        </div>
        <div>
          <dt>messages</dt>
          <dd>{formatCount(report.stats.messages)}</dd>
        </div>
        <div>
          <dt>fragments</dt>
          <dd>{formatCount(report.stats.fragments)}</dd>
        </div>
        <div>
          <dt>jobs waiting</dt>
          <dd>{report.queues.jobs_pending}</dd>
        </div>
        <div>
          <dt>jobs parked</dt>
          <dd>{report.queues.jobs_parked}</dd>
        </div>
      </dl>
      <p className="quiet small home-path">
        <code>{report.home}</code>
        {report.read_only && " (reading only)"}
      </p>
      <Checks checks={report.checks} />
      <Indexes indexes={report.indexes} />
      <Jobs title="Jobs" jobs={report.jobs} none="No job waits or runs." />
      {report.errors.length > 0 && <Jobs title="Errors" jobs={report.errors} none="" />}
    </>
  );
}

function Checks({ checks }: { checks: Report["checks"] }) {
  return (
    <section className="section" aria-labelledby="checks">
      <div className="section-head">
        <h2 id="checks">Checks</h2>
        <p>
          <code>lore doctor --fix</code> mends what it can
        </p>
      </div>
      <ul className="rows">
        {checks.map((check) => (
          <li key={check.name} className="check">
            <span className="tag" data-tone={TONES[check.state]}>
              {check.state}
            </span>
            <span className="check-name">{words(check.name)}</span>
            <span className="check-detail">
              {check.detail}
              {check.remedy && <Command>{check.remedy}</Command>}
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Indexes({ indexes }: { indexes: Report["indexes"] }) {
  return (
    <section className="section" aria-labelledby="indexes">
      <div className="section-head">
        <h2 id="indexes">Indexes</h2>
      </div>
      <ScrollTable label="Table of indexes">
        <thead>
          <tr>
            <th scope="col">Index</th>
            <th scope="col" className="amount">
              Entries
            </th>
            <th scope="col" className="amount">
              Waiting
            </th>
            <th scope="col">Detail</th>
          </tr>
        </thead>
        <tbody>
          {indexes.map((one) => (
            <tr key={one.name}>
              <td>{words(one.name)}</td>
              <td className="amount">{formatCount(one.entries)}</td>
              <td className="amount">
                {one.waiting ? formatCount(one.waiting) : <span className="quiet">none</span>}
              </td>
              <td className="quiet index-detail">{one.detail}</td>
            </tr>
          ))}
        </tbody>
      </ScrollTable>
    </section>
  );
}

function Jobs({ title, jobs, none }: { title: string; jobs: readonly Job[]; none: string }) {
  return (
    <section className="section" aria-label={title}>
      <div className="section-head">
        <h2>{title}</h2>
        <p>{jobs.length ? plural(jobs.length, "entry", "entries") : ""}</p>
      </div>
      {!jobs.length && (title === "Jobs" ? <p className="quiet">{none}</p> : <Empty title={none} />)}
      <ul className="rows">
        {jobs.map((job) => (
          <li key={job.id} className="check">
            <span
              className="tag"
              data-tone={job.state === "parked" ? "bad" : job.state === "done" ? "good" : ""}
            >
              {job.state}
            </span>
            <span className="check-name">{words(job.kind)}</span>
            <span className="check-detail">
              {job.total > 0 && (
                <progress
                  max={job.total}
                  value={job.progress}
                  aria-label={`${job.kind}: ${job.progress} of ${job.total}`}
                />
              )}
              <span className="job-error">{job.last_error || job.subject}</span>
              {job.attempts > 1 && <span className="quiet"> {job.attempts} attempts</span>}
            </span>
            <span className="row-end">
              <Time at={job.updated_at} />
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}
