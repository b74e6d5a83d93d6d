/** The command palette: pages, actions, and what was opened lately. */
import { useId, useState, type KeyboardEvent } from "react";
import { ENTRIES } from "../navigation";
import { recentPages } from "../recent";
import { navigate, withParameters } from "../router";
import { applyTheme, THEMES } from "../theme";
import { Dialog } from "./Dialog";
import { Icon } from "./Icon";

type Command = {
  id: string;
  name: string;
  about: string;
  icon: string;
  group: string;
  key?: string;
  run: () => void;
};

function commands(text: string, openKeys: () => void): Command[] {
  const asked: Command[] = text.trim()
    ? [
        {
          id: "search-text",
          name: `Search for “${text.trim()}”`,
          about: "",
          icon: "search",
          group: "",
          run: () => navigate(withParameters("/", { q: text.trim() })),
        },
        {
          id: "ask-text",
          name: `Ask “${text.trim()}”`,
          about: "",
          icon: "ask",
          group: "",
          run: () => navigate(withParameters("/ask", { q: text.trim() })),
        },
      ]
    : [];
  const pages: Command[] = ENTRIES.map((entry) => ({
    id: entry.page,
    name: entry.name,
    about: entry.about,
    icon: entry.page,
    group: "Pages",
    key: `g ${entry.key}`,
    run: () => navigate(entry.path),
  }));
  const recent: Command[] = recentPages().map((page) => ({
    id: page.path,
    name: page.title,
    about: page.kind,
    icon: page.kind === "session" ? "sessions" : "fragment",
    group: "Recent",
    run: () => navigate(page.path),
  }));
  const actions: Command[] = [
    ...THEMES.map((theme) => ({
      id: `theme-${theme}`,
      name: `Theme: ${theme}`,
      about: "",
      icon: "theme",
      group: "Actions",
      run: () => applyTheme(theme),
    })),
    {
      id: "keys",
      name: "Keyboard shortcuts",
      about: "",
      icon: "keyboard",
      group: "Actions",
      key: "?",
      run: openKeys,
    },
  ];
  const wanted = text.trim().toLowerCase().split(/\s+/);
  const fits = (one: Command) =>
    wanted.every((word) => `${one.name} ${one.about}`.toLowerCase().includes(word));
  const known = [...(text ? pages : recent), ...(text ? recent : pages), ...actions].filter(fits);
  const isBest = (one: Command) => text !== "" && one.name.toLowerCase().startsWith(wanted[0] ?? "");
  return [...known.filter(isBest), ...asked, ...known.filter((one) => !isBest(one))];
}

export function Palette({ close, openKeys }: { close: () => void; openKeys: () => void }) {
  const [text, setText] = useState("");
  const [active, setActive] = useState(0);
  const list = useId();
  const found = commands(text, openKeys);
  const at = Math.min(active, found.length - 1);

  function run(command: Command | undefined): void {
    close();
    command?.run();
  }
  function onKeyDown(event: KeyboardEvent): void {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      const next = (at + step + found.length) % found.length;
      setActive(next);
      document.getElementById(`${list}-${next}`)?.scrollIntoView({ block: "nearest" });
    } else if (event.key === "Enter") {
      event.preventDefault();
      run(found[at]);
    }
  }
  return (
    <Dialog label="Command palette" close={close} className="palette">
      <input
        autoFocus
        className="palette-field"
        role="combobox"
        aria-expanded="true"
        aria-controls={list}
        aria-activedescendant={`${list}-${at}`}
        aria-label="Command, page or question"
        placeholder="A page, a command, or a question"
        value={text}
        onChange={(event) => {
          setText(event.target.value);
          setActive(0);
        }}
        onKeyDown={onKeyDown}
      />
      <ul id={list} role="listbox" aria-label="Commands" className="palette-list">
        {found.map((command, index) => (
          <li
            key={command.id}
            id={`${list}-${index}`}
            role="option"
            aria-selected={index === at}
            className="palette-row"
            onMouseMove={() => setActive(index)}
            onClick={() => run(command)}
          >
            <Icon name={command.icon} />
            <span className="palette-name">{command.name}</span>
            <span className="palette-about">{command.about}</span>
            {command.key && <kbd>{command.key}</kbd>}
          </li>
        ))}
      </ul>
    </Dialog>
  );
}
