"""Real tables, plain and with interactions: who proves the best model, and how fast."""
