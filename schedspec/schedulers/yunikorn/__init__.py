"""Apache YuniKorn as one of the schedulers under test: adapter, queues and process."""

from .adapter import YuniKorn

__all__ = ["YuniKorn"]
