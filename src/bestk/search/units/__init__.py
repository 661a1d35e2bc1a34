"""Units of work under way: formed, launched and landed, and nodes that enumeration closes."""
