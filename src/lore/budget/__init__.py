"""Budget: what calls to models cost, and what they may cost."""
