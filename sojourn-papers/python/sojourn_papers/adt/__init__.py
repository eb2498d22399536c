"""Stanojevic, Shorten and Kellett 2006: Active Drop-Tail, and what it costs.

A drop-tail queue that looks for its smallest sufficient limit: while the link is busier than wanted
(99 %) the limit shrinks by a hundredth per 0.3 s, else it grows. The letter shows it with ns-2
beside Drop-Tail and Adaptive RED: one table and four figures, of which the table, three sentences
with numbers and a formula are left in the text.

It states rates, packet size, buffer, RTTs, numbers of users and ADT's parameters. It does not name
the TCP, the start of the flows, the length of a run, what part of it the means cover, the start of
q_adt, or RED's thresholds. Some of these were found by search for what comes near the table, and
say so.
"""
