"""Whether evictions were needed, and needed once. Two monitors."""
