"""Pure functions on text: words, tokens, entities, instructions. No store, no model, no network."""
