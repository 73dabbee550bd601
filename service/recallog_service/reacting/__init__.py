"""Reactors on a cluster: workers publish what is due on the queue of triggers, and answer its messages.

What is due is in the views, and only an event in the ledger closes it. The queue says only that somebody should
look. So a message may be lost or repeated, a worker may die at any moment, and offsets need not be exact: the worker
that maintains the views of a partition sends unanswered triggers again.
"""
