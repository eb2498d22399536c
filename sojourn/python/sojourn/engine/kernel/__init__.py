"""The real Linux kernel as an engine: a guest of its own, in virtual time, without root.

`guest` builds and boots it, `plan` writes its instructions, `observed` reads its measurements,
`engine` has the methods of `Engine`. This module imports nothing, so that `plan` and `graph`, which
do no I/O, can be imported on every system.
"""
