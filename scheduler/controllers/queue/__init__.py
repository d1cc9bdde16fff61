"""The Queue controller."""
