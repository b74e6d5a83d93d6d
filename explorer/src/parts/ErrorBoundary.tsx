/** Keeps the shell when a page fails. */
import { Component, type ReactNode } from "react";
import { Empty } from "./states";

export class ErrorBoundary extends Component<{ children: ReactNode }, { message: string }> {
  override state = { message: "" };

  static getDerivedStateFromError(error: unknown): { message: string } {
    return { message: error instanceof Error ? error.message : String(error) };
  }

  override render(): ReactNode {
    if (!this.state.message) return this.props.children;
    return (
      <Empty title="This page failed.">
        <p>{this.state.message}</p>
        <button type="button" className="button" onClick={() => window.location.reload()}>
          Load it again
        </button>
      </Empty>
    );
  }
}
