"""Kueue: admits, holds back and evicts Workloads by quota; kube-scheduler places the admitted pods."""

from .adapter import Kueue

__all__ = ["Kueue"]
