"""Ware, Mukerjee, Seshan and Sherry: what BBR gets beside CUBIC, by the depth of the FIFO and the number
of flows, and a model of it (IMC 2019).

Read: the first author's account of the paper in her department's journal (2024), with its simple model,
and the equations 6, 9, 10 and 11 of the full one, as others have programmed them. The paper's figures
were not at hand, so its measured points are not beside ours; the curves of its model are.
"""
