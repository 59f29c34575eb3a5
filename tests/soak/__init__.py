"""The soak run: threads, forks, interrupts, kills, full disks, no memory and hostile files, thousands of times.

`make soak` or `python -m tests.soak --seconds 600 --seed 1 --only forks,kills`. A seed chooses the programs and the
files; when the system runs which thread, or delivers a signal, it does not choose.
"""
