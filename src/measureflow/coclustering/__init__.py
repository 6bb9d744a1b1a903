"""Who belongs with whom: each flow's posterior for pairs of rows, both together, and the partition they ask for."""
