sudo tc qdisc add dev veth0 root handle 1: netem delay 40ms 4ms 25% loss 0.5% corrupt 0.1%
sudo tc qdisc add dev veth0 parent 1: handle 2: tbf rate 8mbit burst 15k latency 300ms
sudo tc qdisc add dev veth0 ingress
sudo tc filter add dev veth0 parent ffff: protocol ip u32 match u32 0 0 police rate 20mbit burst 100k drop flowid :1
