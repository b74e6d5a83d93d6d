/** A modal dialog: the browser keeps the focus inside, and Escape closes it. */
import { useEffect, useRef, type ReactNode } from "react";

type Properties = { label: string; close: () => void; className?: string; children: ReactNode };

export function Dialog({ label, close, className = "", children }: Properties) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const element = dialog.current;
    const before = document.activeElement;
    element?.showModal();
    return () => {
      element?.close();
      if (before instanceof HTMLElement) before.focus({ preventScroll: true });
    };
  }, []);
  return (
    <dialog
      ref={dialog}
      className={`dialog ${className}`}
      aria-label={label}
      onCancel={(event) => {
        event.preventDefault();
        close();
      }}
      onMouseDown={(event) => {
        if (event.target === event.currentTarget) close();
      }}
    >
      {children}
    </dialog>
  );
}
