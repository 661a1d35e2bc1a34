"""What users write down about groups, rules and constraints, read into plain data and checked."""
