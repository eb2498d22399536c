"""Traffic control of Linux's interfaces: `tc` writes the commands, `rtnl` sends the same requests
to the kernel by netlink."""
