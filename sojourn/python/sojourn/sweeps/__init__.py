"""A sweep as one grid: a cell for each combination of the swept values, with its numbers.

    frame = sojourn.sweep("home-uplink", vary={"bottleneck.up.rate": ["5 Mbit/s", "20 Mbit/s"]})

`grid` contains the cells, from Runs or from simulations in memory. `axes` gives each swept key its
heading and its values as numbers. `frames` makes a data frame, and `vary` runs a sweep without a
folder. (Random points that form no grid are drawn in crates/scenario.)
"""
