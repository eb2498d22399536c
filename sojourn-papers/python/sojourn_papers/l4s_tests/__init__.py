"""Heist and Morton's tests of L4S, and RFC 9332's claims about its queues.

The tests' README (heistp/l4s-tests) has tables and pictures of runs in network namespaces, with the
L4STeam's kernel of August 2020. We use its facts: setups, commands, the rates of its tables. By its
results, the kernel's Prague of that time had no virtual RTT yet. We run Prague 0.7, which has one,
Prague 0.7 without it, and DCTCP. The claims of RFC 9332, section 1, about the queues are compared
with runs over rates and RTTs.
"""
