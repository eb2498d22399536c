#!/bin/sh
# A home router, written by hand in the way of many.
DEV=eth1
UP="9500kbit"
IFB=ifb0
tc qdisc del dev $DEV root 2>/dev/null
tc qdisc del dev $DEV ingress 2>/dev/null || true
modprobe ifb numifbs=1
ip link set dev $IFB up
tc qdisc add dev $DEV root handle 1: stab overhead 24 linklayer atm htb default 12
tc class add dev $DEV parent 1: classid 1:1 htb rate $UP ceil $UP
tc class add dev $DEV parent 1:1 classid 1:11 htb rate 1mbit ceil 3mbit prio 1
tc class add dev $DEV parent 1:1 classid 1:12 \
    htb rate 2mbit ceil 20mbit prio 2
tc qdisc add dev $DEV parent 1:11 handle 110: pfifo limit 50
tc qdisc add dev $DEV parent 1:12 handle 120: fq_codel limit 600 target 7ms noecn
tc filter add dev $DEV parent 1: protocol ip prio 1 u32 match ip tos 0x10 0xff flowid 1:11
tc qdisc add dev $DEV handle ffff: ingress
tc filter add dev $DEV parent ffff: protocol all u32 match u32 0 0 action mirred egress redirect dev $IFB
tc qdisc add dev $IFB root cake bandwidth ${DOWN:-45}mbit besteffort ingress
ethtool -K $DEV gso off
