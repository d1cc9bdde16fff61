"""What all controllers share: their shell, what they see, how they write."""
