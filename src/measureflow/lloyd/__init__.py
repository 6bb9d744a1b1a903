"""A compiled k-means engine that gives the same numbers as the circuits of Clarkson 2025."""
