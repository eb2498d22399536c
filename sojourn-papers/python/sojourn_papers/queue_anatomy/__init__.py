"""The anatomy of a Linux host's queue: a qdisc above the driver's ring, and which of the two causes
the delay.

Thirty copies of 32 MB go through a router with a ping beside them, for many sizes of both queues,
without and with byte queue limits. The source states few numbers, and they contradict each other
under the FIFO that it describes. So two readings are run side by side, and the claims are checked
under both. The pictures are lost, so figures 3, 4, 8 and 9 show our points only.
"""
