"""Budget: prices, reservations, the ledger and limits of the cost of model calls."""
