"""What every run has, whatever it searches: limits, reports, and a file to go on from."""
