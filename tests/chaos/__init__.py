"""Chaos: kill -9 of workers, Redis and the broker in random order, while producers publish and rebuilds come and go.

    PYTHONPATH=tests python -m chaos --quick

Afterwards a history checker that shares no code with the projector reads the topic, the acknowledgements and the views:

campaign     what happens, in which order, decided by the seed before anything starts
events       what is said, decided by the seed
producer     a process that publishes, retries, and writes down every acknowledgement before it goes on
asking       it reads its own writes now and then
history      those files
processes    workers, producers and rebuilds as processes of ours
conductor    carries the campaign out
rebuilds     those that start and die meanwhile
watching     what the workers say of themselves meanwhile
rebalances   how many there were
evidence     the topic, the history and the rows of the views, each read by itself
check        what is wrong with the evidence
fold         the oracle, asked for one space at a time
run          all of it, one after the other
report       figures and findings, for people and for programs
"""
