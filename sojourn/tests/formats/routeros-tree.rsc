/queue type add kind=fq-codel name=fq fq-codel-limit=1000 fq-codel-memlimit=32.0MiB fq-codel-ecn=no
/queue tree add max-limit=47.5M name=download parent=bridge queue=fq packet-mark=no-mark
/queue tree add max-limit=9500k name=upload parent=ether1 queue=ethernet-default
