"""`sojourn evaluate`: candidates against the criteria of a document.

A candidate is a queue discipline or a congestion control. A suite (`suite`) is a folder: the
criteria of RFC 7928 or of RFC 9743 as data, each with the scenario that it is run on, or anybody's
own. `entrants` puts them in their places, `judged` decides what holds, and `matrix` shows all of it
as one matrix.
"""
