"""Traffic control of Linux's interfaces: `tc` writes its words, `rtnl` says the same to the kernel
by netlink."""
