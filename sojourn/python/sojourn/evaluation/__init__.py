"""`sojourn evaluate`: candidates against the criteria of a document.

A candidate is a queue discipline or a congestion control. A suite (`suite`) is a folder with
criteria as data, each with its scenario: those of RFC 7928 or of RFC 9743, or the user's.
`entrants` puts the candidates into the scenarios, `claim_results` decides which claims hold, and
`matrix` shows the results as one page.
"""
