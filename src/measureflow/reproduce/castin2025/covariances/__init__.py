"""Figures 1, 2 and 4 to 7: grids of 2 x 2 covariances, flowed and drawn."""
