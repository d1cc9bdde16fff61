"""The plugins that divide the cluster among queues, and their shared parts. A policy enables one of these plugins."""
