/** What the gateway carries from one prompt of a session to the next. */
import type { Api } from "../api";
import { formatShort, plural } from "../format";
import { Icon } from "./Icon";
import { Layer } from "./TurnView";

export function PromptState({ prompt }: { prompt: Api<"PromptLayers"> }) {
  const left = Math.max(prompt.whole_tokens - prompt.prompt_tokens, 0);
  return (
    <section className="prompt-state" aria-label="The prompt now">
      <h2>The prompt now</h2>
      <dl className="prompt-facts">
        <div>
          <dt>Layer</dt>
          <dd>
            <Layer layer={prompt.layer} />
          </dd>
        </div>
        <div>
          <dt>Size</dt>
          <dd>
            {left > 0 ? (
              <>
                {formatShort(prompt.prompt_tokens)} tokens of {formatShort(prompt.whole_tokens)},{" "}
                <span className="saved">{formatShort(left)} left out</span>
              </>
            ) : (
              `${formatShort(prompt.prompt_tokens)} tokens, nothing left out`
            )}
          </dd>
        </div>
        <div>
          <dt>Cached</dt>
          <dd>{formatShort(prompt.cached_tokens)} tokens</dd>
        </div>
        <div>
          <dt>Distilled</dt>
          <dd>{prompt.distilled ? plural(prompt.distilled, "message") : "no message"}</dd>
        </div>
        {prompt.notes > 0 && (
          <div>
            <dt>Notes</dt>
            <dd>{prompt.notes}</dd>
          </div>
        )}
        {prompt.is_private && (
          <div>
            <dt>Private</dt>
            <dd>nothing of it is stored</dd>
          </div>
        )}
      </dl>
      {prompt.knowledge && (
        <details className="fold">
          <summary>
            <Icon name="right" />
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
