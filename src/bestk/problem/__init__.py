"""The data of a question: sums of products, rows, exact fits. Knows nothing of searching."""
