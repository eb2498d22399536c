"""A sweep as one thing: a cell for each combination of the swept values, with its numbers.

    frame = sojourn.sweep("home-uplink", vary={"bottleneck.up.rate": ["5 Mbit/s", "20 Mbit/s"]})

`grid` holds the cells, of Runs or of what was simulated in memory. `axes` reads the swept values:
what a key is called, and which numbers its values are. `frames` makes a data frame, and `vary` runs
a sweep without a folder. (Points that are no grid are drawn in crates/scenario.)
"""
