"""Who belongs with whom: each flow's posterior for pairs of rows, both together, and the partition of most utility."""
