"""Reactors on a cluster: workers publish due triggers on a queue, and answer its messages.

The views contain what is due, and only an event in the ledger closes it. A message in the queue is only a hint to look
at the views. So a message may be lost or repeated, a worker may die at any moment, and offsets need not be exact: the
worker that maintains the views of a partition resends unanswered triggers.
"""
