/** Changes that a person makes: sent, shown, and undone from the toast. */
import { Failure, send, type Api } from "./api";
import { toast } from "./parts/Toasts";
import { refreshAll } from "./query";

export type Correction = Api<"Correction">;

const DONE: Record<string, string> = {
  update: "Changed",
  supersede: "Replaced",
  delete: "Deleted",
  approve: "Approved",
  reject: "Rejected",
};

/** Change a fragment and return what was done, or undefined if the server refused. */
export async function correct(
  id: string,
  verb: keyof typeof DONE,
  body: object = {},
): Promise<Correction | undefined> {
  return change(`/fragments/${encodeURIComponent(id)}/${verb}`, body, DONE[verb] ?? verb);
}

/** Send a change, and tell how it went. */
export async function change(path: string, body: object, done: string): Promise<Correction | undefined> {
  try {
    const correction = await send<Correction>({ path, body });
    toast(done, { undo: correction.action || undefined });
    refreshAll();
    return correction;
  } catch (error) {
    toast(error instanceof Failure ? `${error.message} ${error.hint}`.trim() : String(error), {
      tone: "bad",
    });
    return undefined;
  }
}
