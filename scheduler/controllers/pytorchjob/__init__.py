"""The PyTorchJob controller."""
