"""What queues may have and what is kept for them. Two monitors, and the arithmetic that they share."""
