"""Answer questions about a cluster that exists, in virtual time: simulate a load, plan a change, reduce, explore."""
