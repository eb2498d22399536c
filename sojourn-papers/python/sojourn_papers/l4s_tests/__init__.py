"""Heist and Morton's tests of L4S, and what RFC 9332 says of its queues.

The tests' README (heistp/l4s-tests) has tables and pictures of runs in network namespaces, with the
L4STeam's kernel of August 2020. Read as facts: setups, commands, the rates of its tables. The
kernel's Prague of that time had no virtual RTT yet, as far as its results show; ours is version 0.7,
which has one, and beside it the same without, and DCTCP. Of RFC 9332 what its section 1 says of the
queues is held against runs over rates and RTTs.
"""
