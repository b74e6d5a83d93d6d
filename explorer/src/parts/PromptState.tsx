/** What the gateway carries from one prompt of a session to the next. */
import type { Api } from "../api";
import { formatShort } from "../format";
import { Layer } from "./TurnView";

export function PromptState({ prompt }: { prompt: Api<"PromptLayers"> }) {
  const left = Math.max(prompt.whole_tokens - prompt.prompt_tokens, 0);
  return (
    <section className="prompt-state" aria-label="The prompt now">
      <h2>The prompt now</h2>
      <dl className="facts">
        <dt>Layer</dt>
        <dd>
          <Layer layer={prompt.layer} />
        </dd>
        <dt>Size</dt>
        <dd>
          {formatShort(prompt.prompt_tokens)} tokens of {formatShort(prompt.whole_tokens)}
          {left > 0 && <span className="saved"> {formatShort(left)} left out</span>}
        </dd>
        <dt>Cached</dt>
        <dd>{formatShort(prompt.cached_tokens)} tokens</dd>
        <dt>Distilled</dt>
        <dd>{prompt.distilled} messages</dd>
        {prompt.notes > 0 && (
          <>
            <dt>Notes</dt>
            <dd>{prompt.notes}</dd>
          </>
        )}
        {prompt.is_private && (
          <>
            <dt>Private</dt>
            <dd>nothing of it is stored</dd>
          </>
        )}
      </dl>
      {prompt.knowledge && (
        <details className="fold">
          <summary>
            <span className="fold-name">Knowledge in the prompt</span>
          </summary>
          <pre tabIndex={0} dir="auto">
            {prompt.knowledge}
          </pre>
        </details>
      )}
    </section>
  );
}
