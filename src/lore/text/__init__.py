"""Pure work on text: words, tokens, names, instructions. No store, no model, no network."""
