"""The plugins that divide the cluster among queues, and what they share. A policy has one of them."""
