"""Julius Plenz 2012: a home upload beside a ping, and fq_codel under a shaper before the modem.

One blog post, one line, one upload, two graphs. The graphs are lost, so their spread and their
extremes are ours alone. The difference of the two upload times is not printed, but it is the
sharper test: what one does not know of the file and of the application cancels out in it.
"""
