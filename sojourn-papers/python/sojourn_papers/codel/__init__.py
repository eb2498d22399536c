"""Nichols and Jacobson 2012: CoDel over link rates, RTTs and a link that steps over two decades.

The article has five figures of results and one table. The figures are lost; the text describes them
in words and some numbers, and has the complete table. Our source is the text of Communications of
the ACM 55(7), doi:10.1145/2209249.2209264.

It states link rates, RTTs, the kinds of load, CoDel's two constants, and the steps and the buffer
of the stepping link. The rest is read from an ns-2 script of that month ("Codel test script
v120513"). The script names no author; we assume that the article's authors wrote it. A run lasts
300 s, and the buffer is one product of the rate and 100 ms. Packets have 500 B below 1 Mbit/s. The
RTT of the k-th FTP is 100 + 2 k ms. Both directions of the link are alike."""
