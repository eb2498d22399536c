# 2026-01-01 10:00:00 by RouterOS 7.16
# model = RB5009
/interface bridge
add name=bridge
/queue type
add cake-diffserv=besteffort cake-flowmode=dual-dsthost cake-nat=yes \
    cake-rtt=60ms kind=cake name=cake-rx
add cake-ack-filter=filter cake-diffserv=besteffort cake-flowmode=dual-srchost cake-autorate-ingress=yes \
    cake-nat=yes kind=cake name=cake-tx
add fq-codel-limit=1000 fq-codel-memlimit=32.0MiB fq-codel-quantum=300 kind=fq-codel name=fq
/queue simple
add disabled=yes max-limit=1M/1M name=old target=ether2
add max-limit=256M/24M name=wan queue=cake-rx/cake-tx target=ether1
add max-limit=5M/10M name=guest queue=fq/fq target=192.168.88.0/24
