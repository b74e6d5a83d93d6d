/** A table that scrolls sideways in a narrow window, also with the keyboard. */
import type { ReactNode } from "react";

export function ScrollTable({ label, children }: { label: string; children: ReactNode }) {
  return (
    <div className="scroll-x" tabIndex={0} role="region" aria-label={label}>
      <table>{children}</table>
    </div>
  );
}
