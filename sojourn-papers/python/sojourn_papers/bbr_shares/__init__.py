"""Ware, Mukerjee, Seshan and Sherry: the share of BBR beside CUBIC, by the depth of the FIFO and
the number of flows, and a model of it (IMC 2019).

One source is the first author's account of the paper in her department's journal (2024), with its
simple model. The other is equations 6, 9, 10 and 11 of the full model, as others have programmed
them. The paper's figures were not available, so the curves of its model are beside ours, but not
its measured points.
"""
