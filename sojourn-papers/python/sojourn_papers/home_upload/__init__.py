"""Julius Plenz 2012: a home upload beside a ping, and fq_codel under a shaper before the modem.

One blog post, one line, one upload, two graphs. The graphs are lost, so we have no published values
of their spread and extremes. The difference of the two upload times is not printed, but it is the
sharper test: unknowns of the file and of the application cancel out in it.
"""
