"""The PodGroup controller."""
