"""The real Linux kernel as an engine: a guest of its own, in virtual time, without root.

`guest` makes and boots it, `plan` says what it is to do, `observed` reads what it saw, `engine` has
the verbs. What is imported here is nothing, so that `plan` and `graph`, which are pure, can be had
on every system.
"""
