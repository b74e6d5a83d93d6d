/** The keys of the explorer. */
import { ENTRIES } from "../navigation";
import { Dialog } from "./Dialog";
import { commandKey } from "./Rail";

const GROUPS: [string, [string, string][]][] = [
  [
    "Everywhere",
    [
      ["/", "Search"],
      ["mod K", "Command palette"],
      ["u", "Undo the last change"],
      ["?", "These keys"],
      ["Esc", "Close, or leave a field"],
    ],
  ],
  [
    "Lists",
    [
      ["j k", "Next, previous"],
      ["Enter", "Open"],
      ["e", "Edit the fragment"],
    ],
  ],
  [
    "Fragment",
    [
      ["e", "Edit"],
      ["s", "Replace"],
      ["d", "Delete"],
    ],
  ],
  ["Session", [["n p", "Next, previous turn"]]],
  [
    "Review",
    [
      ["a", "Approve, or the first choice"],
      ["r", "Reject, or the second choice"],
      ["b", "Keep both, or dismiss"],
    ],
  ],
];

export function KeyHelp({ close }: { close: () => void }) {
  const pages: [string, string][] = ENTRIES.map((entry) => [`g ${entry.key}`, entry.name]);
  return (
    <Dialog label="Keyboard shortcuts" close={close} className="key-help">
      <header className="dialog-head">
        <h2>Keys</h2>
        <button type="button" className="button" onClick={close}>
          Close
        </button>
      </header>
      <div className="key-groups">
        {[...GROUPS, ["Go to", pages] as [string, [string, string][]]].map(([name, keys]) => (
          <section key={name}>
            <h3>{name}</h3>
            <dl>
              {keys.map(([key, what]) => (
                <div key={key}>
                  <dt>
                    {key.split(" ").map((one) => (
                      <kbd key={one}>{one === "mod" ? commandKey() : one}</kbd>
                    ))}
                  </dt>
                  <dd>{what}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
    </Dialog>
  );
}
