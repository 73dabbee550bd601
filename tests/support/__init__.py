"""What the suites share: builders of events, an independent oracle, a scheduler of simulated processes."""
