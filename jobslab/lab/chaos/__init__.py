"""What is left of the promise when real processes are really killed?  A run, its faults, and an audit.

plan        which faults, and when: data, and the same again for the same seed
clients     who submits, and what they were answered, written down outside of the store
cluster     the server and the workers as processes, and how each fault is done to them
worker      one of these workers, with an effect for each job
audit       what was promised to the clients, against what is there: the store, its journal, the ledger of effects
run         all of it
"""
