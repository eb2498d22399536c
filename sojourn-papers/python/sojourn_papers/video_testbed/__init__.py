"""RTP video over a Linux router with a shaper: Drop Tail, RED and CoDel, three bottlenecks, a
hundred pings each.

A testbed of three hosts: latency, throughput and loss by three equations, two full tables, and
three pictures whose values for CoDel are lost. The source states little but the rates: neither the
video's rate behind each bottleneck nor the queues' parameters nor the probe. These are derived from
its own numbers. The studies that it cites and its future work are run as sweeps.
"""
