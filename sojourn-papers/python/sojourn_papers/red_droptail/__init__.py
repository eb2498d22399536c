"""Reddy, Ahammed and Banu: RED against Drop-Tail in ns-2, at 45 Mbit/s, by throughput and fairness.

A dumbbell with N FTP flows, a bottleneck of 45 Mbit/s and delay Tp, access delays spread by D. Four
tables: throughput over N at Tp = 80 and 250 ms, Jain's index over D at Tp = 75 and 250 ms. The
source says that RED is slightly better.

It states the rate, Tp, N, D and that ns-2 was used. A search found the rest: it ran some 7000
settings in our engine, and compared throughput and fairness under Drop-Tail together. The result
was checked with ns-2 itself. Each reading changes one parameter. We state two distances of
Drop-Tail's values from the source's: over the 16 throughputs of cases 1 and 2, and over the 6
indices of cases 3 and 4. A distance is the root mean square of the logarithm of the ratio.
"""
