"""Mixtures of Gaussians as objects: noise and shapes, EM, evidence, and the search over the number of clusters."""
