"""Wide data: as many features as rows and more, in a box on the coefficients."""
