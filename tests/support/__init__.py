"""Common parts of the tests: builders of events, an independent oracle, a scheduler of simulated processes."""
