"""Working memory: the blocks of an agent and the scratchpads of its sessions, which are items."""
