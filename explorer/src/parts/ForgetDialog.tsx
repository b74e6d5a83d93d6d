/** Delete something without a trace: first what it would take, then the deed. */
import { useState } from "react";
import { Failure, send, type Api } from "../api";
import { formatCount, words } from "../format";
import { plainLine } from "../markup";
import { refreshAll, useQuery } from "../query";
import { navigate } from "../router";
import { Dialog } from "./Dialog";
import { FailureNote, Skeleton } from "./states";
import { toast } from "./Toasts";

export function ForgetDialog({ id, close }: { id: string; close: () => void }) {
  const preview = useQuery<Api<"ForgetReport">>({ path: "/forget/preview", body: { id } });
  const [busy, setBusy] = useState(false);
  const report = preview.data;

  async function forget(): Promise<void> {
    if (!report) return;
    setBusy(true);
    try {
      const done = await send<Api<"ForgetResult">>({ path: "/forget", body: { id, digest: report.digest } });
      toast(`Forgotten for good: ${formatCount(done.deleted)} records`);
      close();
      refreshAll();
      navigate("/");
    } catch (error) {
      setBusy(false);
      toast(error instanceof Failure ? error.message : String(error), { tone: "bad" });
    }
  }
  return (
    <Dialog label="Forget" close={close}>
      <header className="dialog-head">
        <h2>Forget for good</h2>
      </header>
      <div className="dialog-body">
        <p>This cannot be undone. It takes this fragment, and what was made of it:</p>
        {preview.error && <FailureNote failure={preview.error} />}
        {!report && !preview.error && <Skeleton rows={3} />}
        {report && (
          <>
            <p className="chips">
              {Object.entries(report.counts)
                .filter(([, count]) => count)
                .map(([name, count]) => (
                  <span key={name} className="tag">
                    {formatCount(count)} {words(name)}
                  </span>
                ))}
            </p>
            <ul className="forget-list">
              {report.items.map((item) => (
                <li key={item.id}>
                  <span className="tag">{item.type}</span> {plainLine(item.title)}
                </li>
              ))}
            </ul>
            {report.notes.map((note) => (
              <p key={note} className="notice">
                {note}
              </p>
            ))}
          </>
        )}
        <div className="button-row">
          <button type="button" className="button" autoFocus onClick={close}>
            Keep it
          </button>
          <button
            type="button"
            className="button danger"
            disabled={!report || busy}
            onClick={() => void forget()}
          >
            Forget for good
          </button>
        </div>
      </div>
    </Dialog>
  );
}
