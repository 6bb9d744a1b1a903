"""Who belongs with whom: two flows' opinions of every pair of rows, their average, and the partition it asks for."""
