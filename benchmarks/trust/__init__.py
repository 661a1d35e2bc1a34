"""What trust costs: verification against the run it checks."""
