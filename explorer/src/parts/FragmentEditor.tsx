/** Edit a fragment, or replace it by a new text. */
import { useState, type KeyboardEvent } from "react";
import type { Api } from "../api";
import { correct } from "../corrections";
import { navigate, paths } from "../router";
import { commandKey } from "./Rail";

export type Editing = "update" | "supersede";

const TEXTS: Record<Editing, { label: string; hint: string; save: string }> = {
  update: {
    label: "Text",
    hint: "The same knowledge in better words; the old version stays in its history.",
    save: "Save",
  },
  supersede: {
    label: "What holds now",
    hint: "The old text no longer holds. It is kept, and shown as replaced.",
    save: "Replace",
  },
};

type Properties = { fragment: Api<"Fragment">; editing: Editing; close: () => void };

export function FragmentEditor({ fragment, editing, close }: Properties) {
  const [text, setText] = useState(fragment.content);
  const [reason, setReason] = useState("");
  const [busy, setBusy] = useState(false);
  const words = TEXTS[editing];
  const ready = text.trim() !== "" && text !== fragment.content && !busy;

  async function save(): Promise<void> {
    if (!ready) return;
    setBusy(true);
    const done = await correct(
      fragment.id,
      editing,
      editing === "update" ? { content: text, reason } : { content: text },
    );
    setBusy(false);
    if (!done) return;
    close();
    if (done.new_id) navigate(paths.fragment(done.new_id));
  }
  function onKeyDown(event: KeyboardEvent): void {
    if (event.key === "Escape") close();
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void save();
  }
  return (
    <form
      className="editor"
      onKeyDown={onKeyDown}
      onSubmit={(event) => {
        event.preventDefault();
        void save();
      }}
    >
      <label className="label">
        {words.label}
        <textarea
          className="field"
          autoFocus
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
      </label>
      {editing === "update" && (
        <label className="label">
          Why (optional)
          <input className="field" value={reason} onChange={(event) => setReason(event.target.value)} />
        </label>
      )}
      <p className="quiet small">{words.hint}</p>
      <div className="button-row">
        <button type="submit" className="button primary" disabled={!ready}>
          {words.save} <kbd>{commandKey()} Enter</kbd>
        </button>
        <button type="button" className="button" onClick={close}>
          Cancel <kbd>Esc</kbd>
        </button>
      </div>
    </form>
  );
}
