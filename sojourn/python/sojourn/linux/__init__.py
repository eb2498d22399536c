"""Traffic control of Linux's interfaces: `tc` writes its commands, `rtnl` sends the same to the
kernel by netlink."""
