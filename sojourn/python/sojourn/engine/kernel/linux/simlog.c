// SPDX-License-Identifier: GPL-2.0
/*
 * simlog: what simulated cards did to each packet, event by event (simlog.h).
 *
 * Before the qdisc and where packets are thrown away the kernel's own
 * tracepoints say so (net_dev_queue, kfree_skb, consume_skb); the rest the
 * driver says itself. An event is 40 bytes and some instructions; events are
 * noted where no time passes, so that a guest with a log and one without see
 * the same times.
 */

#include <linux/fs.h>
#include <linux/icmp.h>
#include <linux/ip.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/uaccess.h>
#include <linux/version.h>
#include <linux/vmalloc.h>
#include <net/inet_sock.h>
#include <net/ip.h>
#include <trace/events/net.h>
#include <trace/events/skb.h>

#include "simlog.h"

#define SIMLOG_ROOM	(1U << 16)	/* events */
#define SIMLOG_ENOUGH	(1U << 14)	/* the reader is woken when there are as many */

static struct simlog_event *events;
static unsigned int head, tail;	/* written up to, read up to; they wrap */
static unsigned int missed;
static DEFINE_SPINLOCK(simlog_lock);
static DECLARE_WAIT_QUEUE_HEAD(simlog_wait);
static unsigned long simlog_open_once;

static struct simlog_event *simlog_next(void)
{
	struct simlog_event *event;

	if (head - tail >= SIMLOG_ROOM - 1) {
		missed++;
		return NULL;
	}
	if (unlikely(missed)) {
		event = &events[head++ % SIMLOG_ROOM];
		memset(event, 0, sizeof(*event));
		event->what = SIMLOG_MISSED;
		event->bytes = missed;
		missed = 0;
	}
	event = &events[head++ % SIMLOG_ROOM];
	memset(event, 0, sizeof(*event));
	return event;
}

static void simlog_wake(void)
{
	if (head - tail == SIMLOG_ENOUGH)
		wake_up_interruptible(&simlog_wait);
}

void simlog_note(enum simlog_what what, u16 card, u32 serial, u64 t_ns)
{
	struct simlog_event *event;
	unsigned long flags;

	if (!simlog_open_once)
		return;
	spin_lock_irqsave(&simlog_lock, flags);
	event = simlog_next();
	if (event) {
		event->t_ns = t_ns;
		event->serial = serial;
		event->card = card;
		event->what = what;
	}
	spin_unlock_irqrestore(&simlog_lock, flags);
	simlog_wake();
}

static void simlog_describe(struct simlog_event *event, struct sk_buff *skb, const struct iphdr *ip)
{
	int at = skb_network_offset(skb) + ip->ihl * 4;
	__be16 *ports, room[4];

	event->ds = ip->tos;
	event->bytes = skb->len - skb_network_offset(skb);
	event->from = ip->saddr;
	event->to = ip->daddr;
	event->protocol = ip->protocol;
	event->truesize[0] = skb->truesize;
	event->truesize[1] = skb->truesize >> 8;
	event->truesize[2] = skb->truesize >> 16;
	if (ip_is_fragment(ip) && (ip->frag_off & htons(IP_OFFSET)))
		return;
	ports = skb_header_pointer(skb, at, sizeof(room), room);
	if (!ports)
		return;
	if (ip->protocol == IPPROTO_TCP || ip->protocol == IPPROTO_UDP) {
		event->ports[0] = ports[0];
		event->ports[1] = ports[1];
	} else if (ip->protocol == IPPROTO_ICMP) {
		u8 kind = *(u8 *)ports;

		if (kind == ICMP_ECHO || kind == ICMP_ECHOREPLY) {
			event->ports[0] = ports[2];
			event->ports[1] = ports[2];
		}
	}
}

static void simlog_packet(enum simlog_what what, struct sk_buff *skb, u16 card, u32 serial)
{
	u64 now = ktime_get_ns();
	u32 hash = what == SIMLOG_CAME ? skb_get_hash(skb) : 0;
	struct simlog_event *event;
	unsigned long flags;

	spin_lock_irqsave(&simlog_lock, flags);
	event = simlog_next();
	if (event) {
		event->t_ns = now;
		event->serial = serial;
		event->card = card;
		event->what = what;
		if (what == SIMLOG_CAME)
			simlog_describe(event, skb, ip_hdr(skb));
		else
			event->ds = ip_hdr(skb)->tos;
		event->hash = hash;
	}
	spin_unlock_irqrestore(&simlog_lock, flags);
	simlog_wake();
}

void simlog_left(struct sk_buff *skb, u16 card, u32 serial)
{
	if (simlog_open_once)
		simlog_packet(SIMLOG_LEFT, skb, card, serial);
}

static void simlog_on_queue(void *unused, struct sk_buff *skb)
{
	u32 *serial;
	u16 card;

	if (skb->protocol != htons(ETH_P_IP) || !simlog_card_of(skb, &card, &serial))
		return;
	if (!++*serial)
		++*serial;
	skb->simlog_serial = *serial;
	simlog_packet(SIMLOG_CAME, skb, card, *serial);
}

static void simlog_gone(struct sk_buff *skb)
{
	u32 *serial;
	u16 card;

	/* A packet socket's copy of what the card sends has the packet's number, too. */
	if (!skb->simlog_serial || skb->pkt_type == PACKET_OUTGOING)
		return;
	if (!simlog_card_of(skb, &card, &serial))
		return;
	simlog_note(SIMLOG_GONE, card, skb->simlog_serial, ktime_get_ns());
	skb->simlog_serial = 0;
}

/* Guests are built of 6.12 and of 7.3, whose tracepoint promises to leave the socket as it is. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
typedef struct sock simlog_rx_sock;
#else
typedef const struct sock simlog_rx_sock;
#endif

static void simlog_on_kfree(void *unused, struct sk_buff *skb, void *location,
			    enum skb_drop_reason reason, simlog_rx_sock *rx_sk)
{
	/* A policer before the qdisc: it came to the device all the same. */
	if (reason == SKB_DROP_REASON_TC_EGRESS && !skb->simlog_serial)
		simlog_on_queue(NULL, skb);
	simlog_gone(skb);
}

static void simlog_on_consume(void *unused, struct sk_buff *skb, void *location)
{
	simlog_gone(skb);
}

void simlog_rtt(const struct sock *sk, long rtt_us)
{
	const struct inet_sock *inet = inet_sk(sk);
	struct simlog_event *event;
	unsigned long flags;
	u64 now;

	if (!simlog_open_once || sk->sk_family != AF_INET)
		return;
	now = ktime_get_ns();
	spin_lock_irqsave(&simlog_lock, flags);
	event = simlog_next();
	if (event) {
		event->t_ns = now;
		event->what = SIMLOG_RTT;
		event->protocol = IPPROTO_TCP;
		event->from = inet->inet_saddr;
		event->to = inet->inet_daddr;
		event->ports[0] = inet->inet_sport;
		event->ports[1] = inet->inet_dport;
		event->bytes = rtt_us;
	}
	spin_unlock_irqrestore(&simlog_lock, flags);
	simlog_wake();
}

/* ------------------------------------------------------------ the device */

static int simlog_open(struct inode *inode, struct file *file)
{
	int err;

	if (test_and_set_bit(0, &simlog_open_once))
		return -EBUSY;
	if (!events)
		events = vmalloc(array_size(SIMLOG_ROOM, sizeof(*events)));
	err = events ? 0 : -ENOMEM;
	if (err)
		goto closed;
	head = 0;
	tail = 0;
	missed = 0;
	err = register_trace_net_dev_queue(simlog_on_queue, NULL);
	if (err)
		goto closed;
	err = register_trace_kfree_skb(simlog_on_kfree, NULL);
	if (err)
		goto no_kfree;
	err = register_trace_consume_skb(simlog_on_consume, NULL);
	if (err)
		goto no_consume;
	return stream_open(inode, file);

no_consume:
	unregister_trace_kfree_skb(simlog_on_kfree, NULL);
no_kfree:
	unregister_trace_net_dev_queue(simlog_on_queue, NULL);
closed:
	clear_bit(0, &simlog_open_once);
	return err;
}

static int simlog_close(struct inode *inode, struct file *file)
{
	unregister_trace_consume_skb(simlog_on_consume, NULL);
	unregister_trace_kfree_skb(simlog_on_kfree, NULL);
	unregister_trace_net_dev_queue(simlog_on_queue, NULL);
	tracepoint_synchronize_unregister();
	clear_bit(0, &simlog_open_once);
	return 0;
}

/* As many whole events as there are and as fit; 0: none. */
static ssize_t simlog_read(struct file *file, char __user *buffer, size_t size, loff_t *at)
{
	size_t wanted = size / sizeof(*events), done = 0;

	while (done < wanted && tail != head) {
		unsigned int from = tail % SIMLOG_ROOM;
		size_t most = min3((size_t)(head - tail), (size_t)(SIMLOG_ROOM - from), wanted - done);

		if (copy_to_user(buffer + done * sizeof(*events), &events[from],
				 most * sizeof(*events)))
			return -EFAULT;
		done += most;
		tail += most;
	}
	return done * sizeof(*events);
}

static __poll_t simlog_poll(struct file *file, poll_table *wait)
{
	poll_wait(file, &simlog_wait, wait);
	return head - tail >= SIMLOG_ENOUGH ? EPOLLIN | EPOLLRDNORM : 0;
}

static const struct file_operations simlog_operations = {
	.owner		= THIS_MODULE,
	.open		= simlog_open,
	.release	= simlog_close,
	.read		= simlog_read,
	.poll		= simlog_poll,
};

static struct miscdevice simlog_device = {
	.minor	= MISC_DYNAMIC_MINOR,
	.name	= "simlog",
	.fops	= &simlog_operations,
};

static int __init simlog_init(void)
{
	return misc_register(&simlog_device);
}
device_initcall(simlog_init);
