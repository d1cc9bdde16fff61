"""Clusters of real kubelets and containers, made by kind."""
