"""The anatomy of a Linux host's queue: a qdisc above the driver's ring, and which of the two makes
the delay.

Thirty copies of 32 MB through a router and a ping beside, over the sizes of both queues, without
and with byte queue limits. The source states few numbers, and they contradict each other under the
FIFO that it describes: two readings are run side by side, and the claims say what holds under
which. Of the pictures nothing is left, so figures 3, 4, 8 and 9 are given point by point as ours
alone.
"""
