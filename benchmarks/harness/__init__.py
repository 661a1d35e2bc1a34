"""What every study shares. Nothing is imported here: solver files run where only NumPy is."""
