"""The compiled k-means engine that runs what the circuits of Clarkson 2025 say."""
