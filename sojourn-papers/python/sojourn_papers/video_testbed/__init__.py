"""RTP video over a Linux router that shapes: Drop Tail, RED and CoDel, three bottlenecks, a hundred
pings each.

A testbed of three hosts: latency, throughput and loss by three equations, two full tables, and
three pictures whose values for CoDel are lost. What it leaves open, nearly everything but the
rates, is read from its own numbers: it names neither the video's rate behind each bottleneck nor
the queues' parameters nor the probe. The studies it cites and its future work are sweeps.
"""
