"""Appenzeller, Keslassy and McKeown 2004: how large a router's buffer has to be.

A link with n desynchronised TCP flows needs the product of rate and RTT over sqrt(n), not the whole
product. The report has theory, ns-2 and a Cisco GSR 12410. Its text has the router's complete table
and the formulas; the values of the other figures are lost. Our source is the text of the extended
version, Stanford HPNG Technical Report TR04-HPNG-06-08-00.

It states rates, numbers of flows, buffers and TCP (Reno, drop-tail). It does not state the spread
of RTTs around their mean, the packet size of each experiment (1500 or 1000 B), or the length of a
run."""
