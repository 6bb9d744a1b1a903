"""From a file to numbers."""
