"""Stanojevic, Shorten and Kellett 2006: Active Drop-Tail and its cost.

Active Drop-Tail is a drop-tail queue that searches for its smallest sufficient limit. While the
link is busier than wanted (99 %) the limit shrinks by a hundredth per 0.3 s; otherwise it grows.
The letter compares it in ns-2 with Drop-Tail and Adaptive RED, in one table and four figures. The
text that is left has the table, three sentences with numbers and a formula.

It states rates, packet size, buffer, RTTs, numbers of users and ADT's parameters. It does not state
the TCP, the start of the flows, the length of a run, or the part of it that the means cover. The
start of q_adt and RED's thresholds are missing, too. A search found values of some of these that
give numbers near the table; they are marked as searched.
"""
