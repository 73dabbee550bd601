"""The chaos run: kill -9 of workers, Redis and the broker in random order, while producers publish and rebuilds run.

Each of them is also stopped (SIGSTOP) for some seconds, its disk is full, or its clock jumps; Redis loses all views; a
reader asks questions all the time. Promises are answered, lists are appended to and read, and the topic is copied.

    PYTHONPATH=tests python -m chaos --quick
    PYTHONPATH=tests python -m chaos --time 3600

Afterwards a checker that shares no code with the projector compares the topic, the acknowledgements and the views:

campaign     the actions of a run and their order, determined by the seed before anything starts
events       the events of a run, determined by the seed
producer     a process that publishes, retries, and records every acknowledgement before its next call
reader       a process that asks questions, and records how long each takes and whether its answer is right
appends      a process that appends to lists and reads them, and records each operation
own_writes   reads an event that the producer has just published
history      the files of the producers' acknowledgements
processes    workers, producers and rebuilds as child processes
conductor    executes the campaign
full_disk    a full disk for one process
clocks       jumps of the wall clock of one process
copies       copies of the topic that are killed, or whose disk is full, during the run
rebuilds     rebuilds that start, and are killed, during the run
monitor      samples the health of the workers during the run
rebalances   counts the rebalances
evidence     the topic, the history and the rows of the views, each read independently
check        finds contradictions in the evidence
lists        the histories of the lists, for the checker in `support.list_append`
latencies    how long promises take to be answered
outcome      checks of the copy, the lists and the promises
run          all steps of a run
report       figures and findings, for people and for programs
"""
