"""Clusters with real kubelets and containers, created by kind."""
