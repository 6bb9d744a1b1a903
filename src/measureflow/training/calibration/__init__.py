"""What is fitted after a training, to sets of its own: the head for the number of clusters, the weight of each flow."""
