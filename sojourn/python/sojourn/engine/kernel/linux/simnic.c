// SPDX-License-Identifier: GPL-2.0
/*
 * simnic: simulated network cards, joined in pairs by wires.
 *
 * nic0a and nic0b are the two ends of wire 0, and so on: simnic.pairs=N makes
 * N of them at boot. What one end sends the other receives. Each end is a card
 * of its own and governs its own direction:
 *
 *   qdisc -> ring -> transmitter (rate) -> wire (loss, delay, ...) -> the other end
 *
 * A packet that the qdisc hands over takes a descriptor of the ring. It is
 * transmitted in turn, and from the end of its last bit it travels for the
 * delay. The descriptor is free again when the host is told that the packet is
 * out, by the completion interrupt: at once, or some time after the first
 * completion that the host has not been told of (coalescing). While no
 * descriptor is free the queue is stopped, as in any driver; byte queue limits
 * (the kernel's own) stop it earlier. A ring of 1 is no ring: the qdisc is
 * asked when the transmitter is free.
 *
 * A card may have several transmit queues (simnic.queues), each with a qdisc of
 * its own. They have one transmitter and no ring: as it becomes free, the
 * queues are asked in turn, from the one behind the queue that sent last, until
 * one gives a packet. Asked are those with packets, and the one that sent last.
 *
 * A card is configured and watched through /sys/kernel/simnic/nic0a/, which is
 * there under this name whatever network namespace the device is moved to and
 * however it is renamed, and through a link to it in the device's own folder of
 * /sys/class/net. The README says what each file means.
 *
 * Time: the transmitter never waits for the clock's grain. When the host
 * hears of a completion, what waits in the qdisc is transmitted from the time
 * the transmitter was free, though some instants have passed on the way.
 */

#include <linux/etherdevice.h>
#include <linux/hex.h>
#include <linux/hrtimer.h>
#include <linux/if_vlan.h>
#include <linux/kobject.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <linux/sysfs.h>
#include <linux/version.h>
#include <net/sch_generic.h>
#include <net/tcp.h>

#include "simlog.h"

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
/* Later kernels set a timer and its function in one call, and have no other way. */
static inline void hrtimer_setup(struct hrtimer *timer,
				 enum hrtimer_restart (*function)(struct hrtimer *),
				 clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = function;
}
#endif

/* From the completion to the next packet's coming down: softirqs, no more. */
#define GRAIN_NS	20000ULL
#define MOST_QUEUES	1024U

#define OFFLOADS	(NETIF_F_SG | NETIF_F_FRAGLIST | NETIF_F_GSO_SOFTWARE)

#define RANDOM_BITS	32
#define TABLE_ENTRIES	4096
#define TABLE_SCALE	8192	/* of a standard deviation */

/* The wire's random streams. */
enum { LUCK_LOSS, LUCK_JITTER, LUCK_REORDER, LUCK_DUPLICATE, LUCK_SLOT, LUCKS };

enum cells { CELLS_NONE, CELLS_ATM, CELLS_PTM };

static const char *const cells_names[] = {
	[CELLS_NONE] = "none",
	[CELLS_ATM] = "atm",
	[CELLS_PTM] = "ptm",
};

/* What is set. Numbers that are 0 at boot mean: none. */
struct simnic_params {
	u64 rate_bps;		/* 0: no limit */
	u64 stopped;		/* an outage: the transmitter stands still */
	u64 delay_ns;
	u64 header;		/* bytes of a full packet beside the IP packet */
	u64 overhead;		/* bytes added to the IP packet on the wire */
	u64 minimum;		/* least bytes on the wire, before cells */
	u64 cells;
	u64 ring;		/* descriptors */
	u64 coalesce_ns;
	u64 coalesce_frames;	/* 0: by time only */
	u64 bql;
	u64 offload;
	/* Gilbert and Elliott's chain: probabilities in units of 2^-53. */
	u64 loss_good;
	u64 loss_bad;
	u64 loss_enter;		/* from good to bad */
	u64 loss_leave;		/* from bad to good */
	/* The chain of four states, in the same units; in place of the other where there is any. */
	u64 loss_p13;
	u64 loss_p31;
	u64 loss_p32;
	u64 loss_p23;
	u64 loss_p14;
	u64 loss_key;
	/* Probabilities and correlations in units of 2^-32. */
	u64 jitter_ns;		/* of the distribution in the table, its scale; without one +- so much */
	u64 jitter_rho;
	u64 jitter_key;
	u64 reorder;
	u64 reorder_rho;
	u64 reorder_gap;
	u64 reorder_key;
	u64 duplicate;
	u64 duplicate_rho;
	u64 duplicate_key;
	u64 slot_min_ns;
	u64 slot_max_ns;	/* 0: no slots */
	u64 slot_packets;	/* 0: any number */
	u64 slot_bytes;
	u64 slot_key;
	u64 overtake;		/* a packet may arrive before those that left before it */
	u64 log;		/* its number in the log; 0: nothing of it is noted */
	u64 log_out;		/* the end of each transmission, too */
};

struct simnic_counters {
	u64 sent_packets;	/* whose last bit is out */
	u64 sent_bytes;		/* as the qdisc counts them */
	u64 wire_bytes;
	u64 busy_ns;		/* transmitting, in whole transmissions */
	u64 lost_packets;
	u64 interrupts;		/* completions told */
};

/* A packet in the driver's hands. */
struct simnic_cb {
	u64 wire_bytes;
	u64 serial_ns;		/* its transmission at the rate it began with */
	u64 arrives;
	u32 bytes;		/* as the qdisc counts them */
	u32 limited;		/* those byte queue limits were told of */
	u32 serial;		/* in the log */
};

static struct simnic_cb *cb_of(struct sk_buff *skb)
{
	BUILD_BUG_ON(sizeof(struct simnic_cb) > sizeof(skb->cb));
	return (struct simnic_cb *)skb->cb;
}

struct simnic {
	struct kobject kobj;
	struct net_device *dev;
	struct simnic *peer;
	spinlock_t lock;
	struct simnic_params params;
	struct simnic_counters counters;

	struct sk_buff_head ring;	/* to be transmitted; the first one is being */
	struct sk_buff_head wire;	/* on the way to the peer */

	/* Transmitted, and the host does not know. */
	struct sk_buff_head untold;
	u32 untold_packets;
	u32 untold_limited;

	u64 tx_end;			/* of the transmission under way, or the last one */
	u64 open_at;			/* since when the next packet was wanted, if ... */
	bool wanted;			/* ... one waited for it then */
	u64 halted_at;			/* an outage began; left of the transmission: */
	u64 left_bits;			/* scaled by NSEC_PER_SEC */
	u32 serial;			/* of the latest packet in the log */
	u16 sent_by;			/* the queue that sent last */
	bool wire_armed;
	bool irq_armed;

	u64 luck[LUCKS][4];
	u64 latest[LUCKS];		/* of a stream that is correlated ... */
	bool has_latest[LUCKS];		/* ... once it has begun */
	u8 loss_state;
	u64 reorder_count;
	u64 in_order;			/* when the latest of those that keep their order arrives */
	u64 slot_at;
	u64 slot_packets;		/* that it still takes */
	s64 slot_bytes;
	s16 *jitter_table;

	struct hrtimer tx_timer;
	struct hrtimer irq_timer;
	struct hrtimer wire_timer;
};

static struct kset *simnic_kset;

static unsigned int pairs;
module_param(pairs, uint, 0444);
MODULE_PARM_DESC(pairs, "pairs of devices to make: nic0a and nic0b, nic1a and nic1b, ...");

static char *queues = "";
module_param(queues, charp, 0444);
MODULE_PARM_DESC(queues, "cards with several transmit queues, and how many: 0a:4,2b:16");

/* ------------------------------------------------------------- the wire */

/*
 * The simulator's streams: xoshiro256++, its state filled by SplitMix64. The same
 * key loses the same packets in both.
 */
static void simnic_fill_luck(struct simnic *nic, unsigned int which, u64 key)
{
	for (int i = 0; i < ARRAY_SIZE(nic->luck[which]); i++) {
		u64 z = (key += 0x9e3779b97f4a7c15ULL);

		z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
		z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
		nic->luck[which][i] = z ^ (z >> 31);
	}
	nic->has_latest[which] = false;
}

/* 64 random bits. */
static u64 simnic_bits(struct simnic *nic, unsigned int which)
{
	u64 *s = nic->luck[which];
	u64 drawn = rol64(s[0] + s[3], 23) + s[0];
	u64 shifted = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= shifted;
	s[3] = rol64(s[3], 45);
	return drawn;
}

/* 53 of them: a fraction of one. */
static u64 simnic_draw(struct simnic *nic)
{
	return simnic_bits(nic, LUCK_LOSS) >> 11;
}

/* RANDOM_BITS of them, each number drawn towards the one before it by @rho. */
static u64 simnic_correlated(struct simnic *nic, unsigned int which, u64 rho)
{
	u64 drawn = simnic_bits(nic, which) >> (64 - RANDOM_BITS);

	if (!rho)
		return drawn;
	if (!nic->has_latest[which]) {
		nic->has_latest[which] = true;
		nic->latest[which] = drawn;
		drawn = simnic_bits(nic, which) >> (64 - RANDOM_BITS);
	}
	rho++;
	nic->latest[which] = (drawn * ((1ULL << RANDOM_BITS) - rho) +
			      nic->latest[which] * rho) >> RANDOM_BITS;
	return nic->latest[which];
}

/*
 * Received and lost in bursts and gaps: 1 is received in a gap, 2 received in a
 * burst, 3 lost in a burst, 4 lost by itself in a gap.
 */
static bool simnic_loses_by_state(struct simnic *nic)
{
	const struct simnic_params *p = &nic->params;
	u64 drawn = simnic_draw(nic);

	switch (nic->loss_state) {
	case 2:
		nic->loss_state = drawn < p->loss_p23 ? 3 : 2;
		break;
	case 3:
		if (drawn < p->loss_p32)
			nic->loss_state = 2;
		else if (drawn < p->loss_p32 + p->loss_p31)
			nic->loss_state = 1;
		break;
	case 4:
		nic->loss_state = 1;
		break;
	default:
		if (drawn < p->loss_p14)
			nic->loss_state = 4;
		else if (drawn < p->loss_p14 + p->loss_p13)
			nic->loss_state = 3;
		break;
	}
	return nic->loss_state >= 3;
}

/* The chain steps once a packet, before the packet is judged. */
static bool simnic_loses(struct simnic *nic)
{
	const struct simnic_params *p = &nic->params;
	bool is_bad = nic->loss_state;

	if (p->loss_p13 || p->loss_p14)
		return simnic_loses_by_state(nic);
	if (!p->loss_good && !p->loss_enter)
		return false;
	if (p->loss_enter && simnic_draw(nic) < (is_bad ? p->loss_leave : p->loss_enter))
		is_bad = !is_bad;
	nic->loss_state = is_bad;
	return simnic_draw(nic) < (is_bad ? p->loss_bad : p->loss_good);
}

static bool simnic_doubles(struct simnic *nic)
{
	const struct simnic_params *p = &nic->params;

	return p->duplicate &&
	       simnic_correlated(nic, LUCK_DUPLICATE, p->duplicate_rho) < p->duplicate;
}

/* Whether a packet takes no time at all, and so passes those before it; never fewer than gap - 1 wait. */
static bool simnic_reorders(struct simnic *nic)
{
	const struct simnic_params *p = &nic->params;

	if (!p->reorder)
		return false;
	if (nic->reorder_count + 1 < p->reorder_gap ||
	    simnic_correlated(nic, LUCK_REORDER, p->reorder_rho) >= p->reorder) {
		nic->reorder_count++;
		return false;
	}
	nic->reorder_count = 0;
	return true;
}

/* The delay of one packet. */
static u64 simnic_delay(struct simnic *nic)
{
	const struct simnic_params *p = &nic->params;
	u64 drawn;
	s64 delay = p->delay_ns;

	if (!p->jitter_ns)
		return delay;
	drawn = simnic_correlated(nic, LUCK_JITTER, p->jitter_rho);
	if (nic->jitter_table) {
		s64 scaled = (s64)p->jitter_ns * nic->jitter_table[drawn % TABLE_ENTRIES];

		delay += div_s64(scaled + (scaled < 0 ? -TABLE_SCALE / 2 : TABLE_SCALE / 2),
				 TABLE_SCALE);
	} else {
		delay += mul_u64_u32_shr(2 * p->jitter_ns, drawn, RANDOM_BITS);
		delay -= p->jitter_ns;
	}
	return max(delay, 0LL);
}

static u64 simnic_next_slot(struct simnic *nic, u64 after)
{
	const struct simnic_params *p = &nic->params;
	u32 drawn = simnic_bits(nic, LUCK_SLOT) >> (64 - RANDOM_BITS);

	nic->slot_packets = p->slot_packets ?: U64_MAX;
	nic->slot_bytes = p->slot_bytes ?: S64_MAX;
	return after + p->slot_min_ns +
	       mul_u64_u32_shr(p->slot_max_ns - p->slot_min_ns, drawn, RANDOM_BITS);
}

/*
 * What arrives is collected: the first packet after a slot opens the next one,
 * some time later. A slot that is full is followed by another.
 */
static u64 simnic_slot(struct simnic *nic, u64 arrives, u32 ip_bytes)
{
	if (nic->slot_at < arrives)
		nic->slot_at = simnic_next_slot(nic, arrives);
	else if (!nic->slot_packets || nic->slot_bytes <= 0)
		nic->slot_at = simnic_next_slot(nic, nic->slot_at);
	nic->slot_packets--;
	nic->slot_bytes -= ip_bytes;
	return nic->slot_at;
}

/* When a packet whose last bit leaves now arrives. */
static u64 simnic_arrives(struct simnic *nic, const struct sk_buff *skb, u64 now)
{
	u64 arrives;

	if (simnic_reorders(nic))
		return now;
	arrives = now + simnic_delay(nic);
	if (nic->params.overtake)
		return arrives;
	arrives = max(arrives, nic->in_order);
	if (nic->params.slot_max_ns)
		arrives = simnic_slot(nic, arrives, skb->len - ETH_HLEN);
	nic->in_order = arrives;
	return arrives;
}

/* Puts a packet on the wire, behind those that arrive when it does. */
static void simnic_travel(struct simnic *nic, struct sk_buff *skb, u64 now)
{
	u64 arrives = simnic_arrives(nic, skb, now);
	struct sk_buff *before = skb_peek_tail(&nic->wire);

	while (before && cb_of(before)->arrives > arrives)
		before = skb_queue_is_first(&nic->wire, before) ?
				 NULL : skb_queue_prev(&nic->wire, before);
	cb_of(skb)->arrives = arrives;
	if (before)
		__skb_queue_after(&nic->wire, before, skb);
	else
		__skb_queue_head(&nic->wire, skb);
	/* The arrival that is being handled, whose timer waits no more, looks at the wire again. */
	if (!nic->wire_armed || (!before && hrtimer_is_queued(&nic->wire_timer))) {
		nic->wire_armed = true;
		hrtimer_start(&nic->wire_timer, ns_to_ktime(arrives), HRTIMER_MODE_ABS_SOFT);
	}
}

/* A packet's last bit left at @now. One that is lost and doubled is one packet. */
static void simnic_launch(struct simnic *nic, struct sk_buff *skb, u64 now)
{
	bool doubled = simnic_doubles(nic), lost = simnic_loses(nic);
	struct sk_buff *copy = doubled && !lost ? skb_copy(skb, GFP_ATOMIC) : NULL;

	if (lost && !doubled) {
		nic->counters.lost_packets++;
		if (cb_of(skb)->serial)
			simlog_note(SIMLOG_LOST, nic->params.log, cb_of(skb)->serial, now);
		dev_kfree_skb_any(skb);
		return;
	}
	simnic_travel(nic, skb, now);
	if (copy)
		simnic_travel(nic, copy, now);
}

static enum hrtimer_restart simnic_arrival(struct hrtimer *timer)
{
	struct simnic *nic = container_of(timer, struct simnic, wire_timer);
	u64 now = ktime_to_ns(hrtimer_get_expires(timer));
	struct net_device *to = nic->peer->dev;
	struct sk_buff *skb;

	for (;;) {
		unsigned int bytes;

		spin_lock(&nic->lock);
		skb = skb_peek(&nic->wire);
		if (!skb || cb_of(skb)->arrives > now) {
			nic->wire_armed = skb;
			if (skb)
				hrtimer_set_expires(timer, ns_to_ktime(cb_of(skb)->arrives));
			spin_unlock(&nic->lock);
			return skb ? HRTIMER_RESTART : HRTIMER_NORESTART;
		}
		__skb_unlink(skb, &nic->wire);
		spin_unlock(&nic->lock);

		memset(skb->cb, 0, sizeof(skb->cb));
		/* The next card chooses of its own queues. */
		skb_set_queue_mapping(skb, 0);
		bytes = skb->len;
		/* As __dev_forward_skb() does it, but for the longest it takes: its header may be short. */
		if (____dev_forward_skb(to, skb, false))
			continue;
		skb->protocol = eth_type_trans(skb, to);
		skb_postpull_rcsum(skb, eth_hdr(skb), ETH_HLEN);
		dev_sw_netstats_rx_add(to, bytes);
		netif_receive_skb(skb);
	}
}

/* ---------------------------------------------------- the transmitter */

static u64 simnic_framed(const struct simnic_params *p, u64 ip_bytes)
{
	u64 framed = max(ip_bytes + p->overhead, p->minimum);

	switch (p->cells) {
	case CELLS_ATM:
		return DIV_ROUND_UP_ULL(framed, 48) * 53;
	case CELLS_PTM:
		return DIV_ROUND_UP_ULL(framed * 65, 64);
	default:
		return framed;
	}
}

/* Bytes on the wire; a packet yet to be segmented takes those of its segments. */
static u64 simnic_wire_bytes(const struct simnic *nic, const struct sk_buff *skb)
{
	const struct simnic_params *p = &nic->params;
	u64 headers, full, rest;
	u32 others;

	if (!skb_is_gso(skb))
		return simnic_framed(p, skb->len - ETH_HLEN);

	headers = skb_is_gso_tcp(skb) ? skb_tcp_all_headers(skb) :
					skb_transport_offset(skb) + sizeof(struct udphdr);
	full = headers - ETH_HLEN + skb_shinfo(skb)->gso_size;
	others = max_t(u32, skb_shinfo(skb)->gso_segs, 1) - 1;
	rest = skb->len - ETH_HLEN - others * (u64)skb_shinfo(skb)->gso_size;
	return others * simnic_framed(p, full) + simnic_framed(p, rest);
}

/* Rounded up: a card never carries more than its rate. */
static u64 simnic_serial_ns(const struct simnic *nic, u64 wire_bytes)
{
	u64 rate = nic->params.rate_bps;

	return rate ? div64_u64(wire_bytes * 8 * NSEC_PER_SEC + rate - 1, rate) : 0;
}

/* Begins to transmit the first packet of the ring. */
static void simnic_begin(struct simnic *nic, u64 start)
{
	struct simnic_cb *cb = cb_of(skb_peek(&nic->ring));

	cb->serial_ns = simnic_serial_ns(nic, cb->wire_bytes);
	nic->tx_end = start + cb->serial_ns;
	if (nic->params.stopped) {
		nic->halted_at = start;
		nic->left_bits = cb->wire_bytes * 8 * NSEC_PER_SEC;
		return;
	}
	hrtimer_start(&nic->tx_timer, ns_to_ktime(nic->tx_end), HRTIMER_MODE_ABS_SOFT);
}

static bool simnic_is_full(const struct simnic *nic)
{
	return skb_queue_len(&nic->ring) + nic->untold_packets >= nic->params.ring;
}

static bool simnic_has_packets(const struct netdev_queue *queue)
{
	bool has;

	rcu_read_lock();
	has = qdisc_qlen_sum(rcu_dereference(queue->qdisc)) > 0;
	rcu_read_unlock();
	return has;
}

static bool simnic_any_has_packets(const struct simnic *nic)
{
	unsigned int i;

	for (i = 0; i < nic->dev->real_num_tx_queues; i++) {
		if (simnic_has_packets(netdev_get_tx_queue(nic->dev, i)))
			return true;
	}
	return false;
}

static void simnic_stop_queues(struct simnic *nic)
{
	unsigned int i;

	for (i = 0; i < nic->dev->real_num_tx_queues; i++)
		netif_tx_stop_queue(netdev_get_tx_queue(nic->dev, i));
}

/*
 * Has the queues asked in turn, the one that sent last at the end. The first
 * that gives a packet stops all, so those behind it are not asked.
 */
static void simnic_wake_queues(struct simnic *nic, unsigned int sent_by)
{
	unsigned int count = nic->dev->real_num_tx_queues, i;

	for (i = 1; i <= count; i++) {
		struct netdev_queue *queue =
			netdev_get_tx_queue(nic->dev, (sent_by + i) % count);

		if (i == count || simnic_has_packets(queue))
			netif_tx_wake_queue(queue);
		else
			netif_tx_start_queue(queue);
	}
}

/*
 * The completion interrupt: the host hears that packets are out, and sends
 * more. Called with the lock held; returns with it released, for the host may
 * send at once.
 */
static void simnic_interrupt(struct simnic *nic, u64 now)
{
	unsigned int sent_by = nic->sent_by;
	struct netdev_queue *queue = netdev_get_tx_queue(nic->dev, sent_by);
	u32 packets = nic->untold_packets, limited = nic->untold_limited;
	struct sk_buff_head done;
	bool wake;

	__skb_queue_head_init(&done);
	skb_queue_splice_init(&nic->untold, &done);
	nic->untold_packets = 0;
	nic->untold_limited = 0;
	nic->counters.interrupts++;

	if (netif_xmit_stopped(queue)) {
		nic->wanted = simnic_any_has_packets(nic);
		nic->open_at = now;
	}
	wake = netif_tx_queue_stopped(queue) && !simnic_is_full(nic);
	spin_unlock(&nic->lock);

	/* Packets that carry no bytes for the limits came before they were on. */
	if (limited)
		netdev_tx_completed_queue(queue, packets, limited);
	__skb_queue_purge(&done);
	if (wake)
		simnic_wake_queues(nic, sent_by);
}

static enum hrtimer_restart simnic_coalesced(struct hrtimer *timer)
{
	struct simnic *nic = container_of(timer, struct simnic, irq_timer);

	spin_lock(&nic->lock);
	nic->irq_armed = false;
	if (nic->untold_packets)
		simnic_interrupt(nic, ktime_to_ns(hrtimer_get_expires(timer)));
	else
		spin_unlock(&nic->lock);
	return HRTIMER_NORESTART;
}

/*
 * Whether the host is to be told at once. If not, the packet's memory stays
 * with its sender until it is told, as the card's would.
 */
static bool simnic_tells_now(const struct simnic *nic)
{
	const struct simnic_params *p = &nic->params;

	return !p->coalesce_ns ||
	       (p->coalesce_frames && nic->untold_packets >= p->coalesce_frames);
}

static void simnic_count_sent(struct simnic *nic, const struct simnic_cb *cb)
{
	nic->counters.sent_packets++;
	nic->counters.sent_bytes += cb->bytes;
	nic->counters.wire_bytes += cb->wire_bytes;
	nic->counters.busy_ns += cb->serial_ns;
	dev_sw_netstats_tx_add(nic->dev, 1, cb->bytes);
}

/* The end of a transmission: the last bit of the ring's first packet is out. */
static enum hrtimer_restart simnic_sent(struct hrtimer *timer)
{
	struct simnic *nic = container_of(timer, struct simnic, tx_timer);
	struct sk_buff *skb;
	u64 now;

	spin_lock(&nic->lock);
	now = nic->tx_end;
	skb = skb_peek(&nic->ring);
	/* A change of the rate came between the timer and this call. */
	if (!skb || nic->params.stopped || ktime_to_ns(hrtimer_get_expires(timer)) < now) {
		spin_unlock(&nic->lock);
		return HRTIMER_NORESTART;
	}
	__skb_unlink(skb, &nic->ring);
	simnic_count_sent(nic, cb_of(skb));
	if (nic->params.log_out && cb_of(skb)->serial)
		simlog_note(SIMLOG_OUT, nic->params.log, cb_of(skb)->serial, now);
	nic->untold_packets++;
	nic->untold_limited += cb_of(skb)->limited;
	if (!skb_queue_empty(&nic->ring))
		simnic_begin(nic, now);

	if (simnic_tells_now(nic)) {
		skb_orphan(skb);
		simnic_launch(nic, skb, now);
		simnic_interrupt(nic, now);
		return HRTIMER_NORESTART;
	}

	if (skb->destructor) {
		struct sk_buff *copy = skb_clone(skb, GFP_ATOMIC);

		if (copy) {
			__skb_queue_tail(&nic->untold, skb);
			skb = copy;
		}
	}
	simnic_launch(nic, skb, now);
	if (!nic->irq_armed) {
		nic->irq_armed = true;
		hrtimer_start(&nic->irq_timer, ns_to_ktime(now + nic->params.coalesce_ns),
			      HRTIMER_MODE_ABS_SOFT);
	}
	spin_unlock(&nic->lock);
	return HRTIMER_NORESTART;
}

/* When the transmission of a packet that comes down now, to an idle card, begins. */
static u64 simnic_start_time(struct simnic *nic)
{
	u64 now = ktime_get_ns();
	u64 since = max(nic->tx_end, nic->open_at);

	if (nic->wanted && now <= since + GRAIN_NS)
		return since;
	return max(now, nic->tx_end);
}

static netdev_tx_t simnic_xmit(struct sk_buff *skb, struct net_device *dev)
{
	struct simnic *nic = *(struct simnic **)netdev_priv(dev);
	u16 index = skb_get_queue_mapping(skb);
	u32 serial = skb->simlog_serial;
	struct simnic_cb *cb;

	skb->simlog_serial = 0;
	if (serial)
		simlog_left(skb, nic->params.log, serial);
	/* What looped or was shared keeps its own control block. */
	skb = skb_share_check(skb, GFP_ATOMIC);
	if (unlikely(!skb))
		return NETDEV_TX_OK;
	skb_tx_timestamp(skb);

	spin_lock_bh(&nic->lock);
	memset(skb->cb, 0, sizeof(skb->cb));
	cb = cb_of(skb);
	cb->bytes = skb->len;
	cb->wire_bytes = simnic_wire_bytes(nic, skb);
	cb->serial = serial;

	/* Without a rate there is no transmission to wait for, and no ring. */
	if (!nic->params.rate_bps && !nic->params.stopped && skb_queue_empty(&nic->ring)) {
		simnic_count_sent(nic, cb);
		skb_orphan(skb);
		simnic_launch(nic, skb, ktime_get_ns());
		spin_unlock_bh(&nic->lock);
		return NETDEV_TX_OK;
	}

	if (nic->params.bql) {
		cb->limited = skb->len;
		netdev_tx_sent_queue(netdev_get_tx_queue(dev, index), skb->len);
	}
	__skb_queue_tail(&nic->ring, skb);
	if (skb_queue_len(&nic->ring) == 1)
		simnic_begin(nic, simnic_start_time(nic));
	nic->wanted = false;
	nic->sent_by = index;
	if (simnic_is_full(nic))
		simnic_stop_queues(nic);
	spin_unlock_bh(&nic->lock);
	return NETDEV_TX_OK;
}

/*
 * The rate changes, or an outage begins or ends: what the transmission under
 * way still has to send it sends at the new rate. Called with the lock held.
 */
static void simnic_change_rate(struct simnic *nic, u64 rate_bps, u64 stopped)
{
	struct simnic_params *p = &nic->params;
	u64 now = ktime_get_ns();

	if (skb_queue_empty(&nic->ring)) {
		p->rate_bps = rate_bps;
		p->stopped = stopped;
		return;
	}
	if (!p->stopped)
		nic->left_bits = nic->tx_end > now ? (nic->tx_end - now) * p->rate_bps : 0;
	if (stopped && !p->stopped)
		nic->halted_at = now;
	p->rate_bps = rate_bps;
	p->stopped = stopped;
	hrtimer_try_to_cancel(&nic->tx_timer);
	if (stopped)
		return;
	nic->tx_end = now + (rate_bps ? div64_u64(nic->left_bits + rate_bps - 1, rate_bps) : 0);
	hrtimer_start(&nic->tx_timer, ns_to_ktime(nic->tx_end), HRTIMER_MODE_ABS_SOFT);
}

/* ---------------------------------------------------------- the device */

static int simnic_open(struct net_device *dev)
{
	netif_tx_start_all_queues(dev);
	netif_carrier_on(dev);
	return 0;
}

/* All that the card holds is gone, what is on the wire arrives. */
static int simnic_stop(struct net_device *dev)
{
	struct simnic *nic = *(struct simnic **)netdev_priv(dev);
	unsigned int i;

	netif_tx_stop_all_queues(dev);
	hrtimer_cancel(&nic->tx_timer);
	hrtimer_cancel(&nic->irq_timer);
	spin_lock_bh(&nic->lock);
	__skb_queue_purge(&nic->ring);
	__skb_queue_purge(&nic->untold);
	nic->untold_packets = 0;
	nic->untold_limited = 0;
	nic->irq_armed = false;
	nic->wanted = false;
	spin_unlock_bh(&nic->lock);
	for (i = 0; i < dev->num_tx_queues; i++)
		netdev_tx_reset_queue(netdev_get_tx_queue(dev, i));
	return 0;
}

static netdev_features_t simnic_fix_features(struct net_device *dev, netdev_features_t features)
{
	struct simnic *nic = *(struct simnic **)netdev_priv(dev);

	return nic->params.offload ? features | OFFLOADS | NETIF_F_GSO : features & ~OFFLOADS;
}

static const struct net_device_ops simnic_ops = {
	.ndo_open		= simnic_open,
	.ndo_stop		= simnic_stop,
	.ndo_start_xmit		= simnic_xmit,
	.ndo_fix_features	= simnic_fix_features,
	.ndo_validate_addr	= eth_validate_addr,
	.ndo_set_mac_address	= eth_mac_addr,
	.ndo_get_stats64	= dev_get_tstats64,
};

bool simlog_card_of(const struct sk_buff *skb, u16 *card, u32 **serial)
{
	struct simnic *nic;

	if (!skb->dev || skb->dev->netdev_ops != &simnic_ops)
		return false;
	nic = *(struct simnic **)netdev_priv(skb->dev);
	*card = nic->params.log;
	*serial = &nic->serial;
	return nic->params.log;
}

static void simnic_setup(struct net_device *dev)
{
	ether_setup(dev);
	dev->netdev_ops = &simnic_ops;
	dev->pcpu_stat_type = NETDEV_PCPU_STAT_TSTATS;
	dev->min_mtu = ETH_MIN_MTU;
	dev->max_mtu = ETH_MAX_MTU;
	/* Nothing corrupts packets between the two ends. */
	dev->features = NETIF_F_HW_CSUM | NETIF_F_HIGHDMA;
	dev->hw_features = dev->features | OFFLOADS;
	/* One packet at a time: without this TCP still builds larger ones. */
	netif_set_tso_max_segs(dev, 1);
}

/* ------------------------------------------------------------ its files */

struct simnic_file {
	struct attribute attr;
	ssize_t (*show)(struct simnic *nic, const struct simnic_file *file, char *page);
	ssize_t (*store)(struct simnic *nic, const struct simnic_file *file, const char *text);
	size_t offset;
	u64 least;
	u64 most;
};

static u64 *simnic_field(struct simnic *nic, const struct simnic_file *file)
{
	return (u64 *)((char *)nic + file->offset);
}

static ssize_t simnic_show_number(struct simnic *nic, const struct simnic_file *file, char *page)
{
	return sysfs_emit(page, "%llu\n", *simnic_field(nic, file));
}

static ssize_t simnic_read_number(const struct simnic_file *file, const char *text, u64 *value)
{
	int err = kstrtou64(text, 10, value);

	if (err)
		return err;
	return *value < file->least || *value > file->most ? -ERANGE : 0;
}

static ssize_t simnic_store_number(struct simnic *nic, const struct simnic_file *file,
				   const char *text)
{
	u64 value;
	ssize_t err = simnic_read_number(file, text, &value);

	if (err)
		return err;
	spin_lock_bh(&nic->lock);
	*simnic_field(nic, file) = value;
	spin_unlock_bh(&nic->lock);
	return 0;
}

static ssize_t simnic_store_rate(struct simnic *nic, const struct simnic_file *file,
				 const char *text)
{
	u64 value;
	ssize_t err = simnic_read_number(file, text, &value);

	if (err)
		return err;
	spin_lock_bh(&nic->lock);
	if (file->offset == offsetof(struct simnic, params.stopped))
		simnic_change_rate(nic, nic->params.rate_bps, value);
	else
		simnic_change_rate(nic, value, nic->params.stopped);
	spin_unlock_bh(&nic->lock);
	return 0;
}

static ssize_t simnic_store_key(struct simnic *nic, const struct simnic_file *file,
				 const char *text)
{
	ssize_t err = simnic_store_number(nic, file, text);

	if (err)
		return err;
	spin_lock_bh(&nic->lock);
	switch (file->offset) {
	case offsetof(struct simnic, params.loss_key):
		simnic_fill_luck(nic, LUCK_LOSS, nic->params.loss_key);
		nic->loss_state = 0;
		break;
	case offsetof(struct simnic, params.jitter_key):
		simnic_fill_luck(nic, LUCK_JITTER, nic->params.jitter_key);
		break;
	case offsetof(struct simnic, params.reorder_key):
		simnic_fill_luck(nic, LUCK_REORDER, nic->params.reorder_key);
		nic->reorder_count = 0;
		break;
	case offsetof(struct simnic, params.duplicate_key):
		simnic_fill_luck(nic, LUCK_DUPLICATE, nic->params.duplicate_key);
		break;
	case offsetof(struct simnic, params.slot_key):
		simnic_fill_luck(nic, LUCK_SLOT, nic->params.slot_key);
		nic->slot_at = 0;
		break;
	}
	spin_unlock_bh(&nic->lock);
	return 0;
}

/*
 * The first entry's number and the entries, each four hexadecimal digits, the
 * high ones first: two's complement. A page has room for 512 and more.
 */
static ssize_t simnic_store_table(struct simnic *nic, const struct simnic_file *file,
				  const char *text)
{
	char *digits;
	unsigned long first = simple_strtoul(text, &digits, 10);
	u8 bytes[2];

	if (!nic->jitter_table)
		nic->jitter_table = kcalloc(TABLE_ENTRIES, sizeof(s16), GFP_KERNEL);
	if (!nic->jitter_table)
		return -ENOMEM;
	for (digits = skip_spaces(digits); *digits && *digits != '\n'; digits += 4, first++) {
		if (first >= TABLE_ENTRIES || hex2bin(bytes, digits, 2))
			return -EINVAL;
		nic->jitter_table[first] = (s16)(bytes[0] << 8 | bytes[1]);
	}
	return 0;
}

static ssize_t simnic_store_offload(struct simnic *nic, const struct simnic_file *file,
				    const char *text)
{
	ssize_t err = simnic_store_number(nic, file, text);

	if (err)
		return err;
	rtnl_lock();
	netif_set_tso_max_segs(nic->dev, nic->params.offload ? GSO_MAX_SEGS : 1);
	netdev_update_features(nic->dev);
	rtnl_unlock();
	return 0;
}

/*
 * A full packet (psched_mtu) has this header. What is sent has Ethernet's all
 * the same, so there is always room for that.
 */
static ssize_t simnic_store_header(struct simnic *nic, const struct simnic_file *file,
				   const char *text)
{
	ssize_t err = simnic_store_number(nic, file, text);

	if (err)
		return err;
	rtnl_lock();
	nic->dev->hard_header_len = nic->params.header;
	nic->dev->needed_headroom = max(ETH_HLEN - (int)nic->params.header, 0);
	rtnl_unlock();
	return 0;
}

static ssize_t simnic_show_cells(struct simnic *nic, const struct simnic_file *file, char *page)
{
	return sysfs_emit(page, "%s\n", cells_names[nic->params.cells]);
}

static ssize_t simnic_store_cells(struct simnic *nic, const struct simnic_file *file,
				  const char *text)
{
	int found = sysfs_match_string(cells_names, text);

	if (found < 0)
		return found;
	spin_lock_bh(&nic->lock);
	nic->params.cells = found;
	spin_unlock_bh(&nic->lock);
	return 0;
}

/* What holds a descriptor: in the ring, or out and untold. */
static ssize_t simnic_show_ring_packets(struct simnic *nic, const struct simnic_file *file,
					char *page)
{
	u32 packets;

	spin_lock_bh(&nic->lock);
	packets = skb_queue_len(&nic->ring) + nic->untold_packets;
	spin_unlock_bh(&nic->lock);
	return sysfs_emit(page, "%u\n", packets);
}

/* Bytes whose last bit is not out, as the qdisc counts them. */
static ssize_t simnic_show_ring_bytes(struct simnic *nic, const struct simnic_file *file,
				      char *page)
{
	struct sk_buff *skb;
	u64 bytes = 0;

	spin_lock_bh(&nic->lock);
	skb_queue_walk(&nic->ring, skb)
		bytes += skb->len;
	spin_unlock_bh(&nic->lock);
	return sysfs_emit(page, "%llu\n", bytes);
}

static ssize_t simnic_show_bql_limit(struct simnic *nic, const struct simnic_file *file,
				     char *page)
{
	return sysfs_emit(page, "%u\n", netdev_get_tx_queue(nic->dev, 0)->dql.limit);
}

static ssize_t simnic_show_bql_inflight(struct simnic *nic, const struct simnic_file *file,
					char *page)
{
	const struct dql *dql = &netdev_get_tx_queue(nic->dev, 0)->dql;

	return sysfs_emit(page, "%u\n", dql->num_queued - dql->num_completed);
}

static ssize_t simnic_show_ifindex(struct simnic *nic, const struct simnic_file *file, char *page)
{
	return sysfs_emit(page, "%d\n", nic->dev->ifindex);
}

#define NUMBER(_name, _store, _least, _most)				\
	static struct simnic_file file_##_name = {			\
		.attr = { .name = #_name, .mode = 0644 },		\
		.show = simnic_show_number, .store = _store,		\
		.offset = offsetof(struct simnic, params._name),	\
		.least = _least, .most = _most,				\
	}

#define COUNTER(_name)							\
	static struct simnic_file file_##_name = {			\
		.attr = { .name = #_name, .mode = 0444 },		\
		.show = simnic_show_number,				\
		.offset = offsetof(struct simnic, counters._name),	\
	}

#define STATE(_name)							\
	static struct simnic_file file_##_name = {			\
		.attr = { .name = #_name, .mode = 0444 },		\
		.show = simnic_show_##_name,				\
	}

/* A whole second's worth of the largest packet at 1 bit/s stays in 64 bits. */
NUMBER(rate_bps, simnic_store_rate, 0, 1000ULL * NSEC_PER_SEC);
NUMBER(stopped, simnic_store_rate, 0, 1);
NUMBER(delay_ns, simnic_store_number, 0, 3600ULL * NSEC_PER_SEC);
NUMBER(header, simnic_store_header, 0, 1024);
NUMBER(overhead, simnic_store_number, 0, 1024);
NUMBER(minimum, simnic_store_number, 0, 1024);
NUMBER(ring, simnic_store_number, 1, 1 << 20);
NUMBER(coalesce_ns, simnic_store_number, 0, NSEC_PER_SEC);
NUMBER(coalesce_frames, simnic_store_number, 0, 1 << 20);
NUMBER(bql, simnic_store_number, 0, 1);
NUMBER(offload, simnic_store_offload, 0, 1);
NUMBER(loss_good, simnic_store_number, 0, 1ULL << 53);
NUMBER(loss_bad, simnic_store_number, 0, 1ULL << 53);
NUMBER(loss_enter, simnic_store_number, 0, 1ULL << 53);
NUMBER(loss_leave, simnic_store_number, 0, 1ULL << 53);
NUMBER(loss_p13, simnic_store_number, 0, 1ULL << 53);
NUMBER(loss_p31, simnic_store_number, 0, 1ULL << 53);
NUMBER(loss_p32, simnic_store_number, 0, 1ULL << 53);
NUMBER(loss_p23, simnic_store_number, 0, 1ULL << 53);
NUMBER(loss_p14, simnic_store_number, 0, 1ULL << 53);
NUMBER(loss_key, simnic_store_key, 0, U64_MAX);
NUMBER(jitter_ns, simnic_store_number, 0, 3600ULL * NSEC_PER_SEC);
NUMBER(jitter_rho, simnic_store_number, 0, U32_MAX);
NUMBER(jitter_key, simnic_store_key, 0, U64_MAX);
NUMBER(reorder, simnic_store_number, 0, 1ULL << 32);
NUMBER(reorder_rho, simnic_store_number, 0, U32_MAX);
NUMBER(reorder_gap, simnic_store_number, 0, U32_MAX);
NUMBER(reorder_key, simnic_store_key, 0, U64_MAX);
NUMBER(duplicate, simnic_store_number, 0, 1ULL << 32);
NUMBER(duplicate_rho, simnic_store_number, 0, U32_MAX);
NUMBER(duplicate_key, simnic_store_key, 0, U64_MAX);
NUMBER(slot_min_ns, simnic_store_number, 0, 3600ULL * NSEC_PER_SEC);
NUMBER(slot_max_ns, simnic_store_number, 0, 3600ULL * NSEC_PER_SEC);
NUMBER(slot_packets, simnic_store_number, 0, U32_MAX);
NUMBER(slot_bytes, simnic_store_number, 0, U32_MAX);
NUMBER(slot_key, simnic_store_key, 0, U64_MAX);
NUMBER(overtake, simnic_store_number, 0, 1);
NUMBER(log, simnic_store_number, 0, U16_MAX);
NUMBER(log_out, simnic_store_number, 0, 1);
COUNTER(sent_packets);
COUNTER(sent_bytes);
COUNTER(wire_bytes);
COUNTER(busy_ns);
COUNTER(lost_packets);
COUNTER(interrupts);
STATE(ring_packets);
STATE(ring_bytes);
STATE(bql_limit);
STATE(bql_inflight);
STATE(ifindex);

static struct simnic_file file_cells = {
	.attr = { .name = "cells", .mode = 0644 },
	.show = simnic_show_cells, .store = simnic_store_cells,
};

static struct simnic_file file_jitter_table = {
	.attr = { .name = "jitter_table", .mode = 0200 },
	.store = simnic_store_table,
};

static struct attribute *simnic_attrs[] = {
	&file_rate_bps.attr, &file_stopped.attr, &file_delay_ns.attr,
	&file_header.attr, &file_overhead.attr, &file_minimum.attr, &file_cells.attr,
	&file_ring.attr, &file_coalesce_ns.attr, &file_coalesce_frames.attr,
	&file_bql.attr, &file_offload.attr,
	&file_loss_good.attr, &file_loss_bad.attr, &file_loss_enter.attr,
	&file_loss_leave.attr, &file_loss_p13.attr, &file_loss_p31.attr,
	&file_loss_p32.attr, &file_loss_p23.attr, &file_loss_p14.attr, &file_loss_key.attr,
	&file_jitter_ns.attr, &file_jitter_rho.attr, &file_jitter_table.attr, &file_jitter_key.attr,
	&file_reorder.attr, &file_reorder_rho.attr, &file_reorder_gap.attr, &file_reorder_key.attr,
	&file_duplicate.attr, &file_duplicate_rho.attr, &file_duplicate_key.attr,
	&file_slot_min_ns.attr, &file_slot_max_ns.attr, &file_slot_packets.attr,
	&file_slot_bytes.attr, &file_slot_key.attr, &file_overtake.attr,
	&file_log.attr, &file_log_out.attr,
	&file_sent_packets.attr, &file_sent_bytes.attr, &file_wire_bytes.attr,
	&file_busy_ns.attr, &file_lost_packets.attr, &file_interrupts.attr,
	&file_ring_packets.attr, &file_ring_bytes.attr,
	&file_bql_limit.attr, &file_bql_inflight.attr, &file_ifindex.attr,
	NULL,
};
ATTRIBUTE_GROUPS(simnic);

static ssize_t simnic_show(struct kobject *kobj, struct attribute *attr, char *page)
{
	const struct simnic_file *file = container_of(attr, struct simnic_file, attr);

	return file->show(container_of(kobj, struct simnic, kobj), file, page);
}

static ssize_t simnic_store(struct kobject *kobj, struct attribute *attr, const char *text,
			    size_t count)
{
	const struct simnic_file *file = container_of(attr, struct simnic_file, attr);
	ssize_t err = file->store(container_of(kobj, struct simnic, kobj), file, text);

	return err ? err : count;
}

static const struct sysfs_ops simnic_sysfs_ops = {
	.show = simnic_show,
	.store = simnic_store,
};

static void simnic_release(struct kobject *kobj)
{
	kfree(container_of(kobj, struct simnic, kobj));
}

static const struct kobj_type simnic_type = {
	.sysfs_ops = &simnic_sysfs_ops,
	.default_groups = simnic_groups,
	.release = simnic_release,
};

/* --------------------------------------------------------------- making */

/* The number of a card's transmit queues, of the list in simnic.queues; 0: it is not in the list. */
static unsigned int simnic_queues_of(unsigned int pair, unsigned int end)
{
	const char *at = queues;
	unsigned int its_pair, count;
	char its_end;

	while (at && sscanf(at, "%u%c:%u", &its_pair, &its_end, &count) == 3) {
		if (its_pair == pair && its_end == 'a' + end)
			return clamp(count, 1U, MOST_QUEUES);
		at = strchr(at, ',');
		at = at ? at + 1 : NULL;
	}
	return 0;
}

static struct simnic *simnic_make(unsigned int pair, unsigned int end)
{
	u8 address[ETH_ALEN] = { 0x02, 's', 'j', pair >> 8, pair, end };
	unsigned int listed = simnic_queues_of(pair, end);
	struct net_device *dev;
	struct simnic *nic;
	int err;

	nic = kzalloc(sizeof(*nic), GFP_KERNEL);
	if (!nic)
		return ERR_PTR(-ENOMEM);
	spin_lock_init(&nic->lock);
	__skb_queue_head_init(&nic->ring);
	__skb_queue_head_init(&nic->wire);
	__skb_queue_head_init(&nic->untold);
	hrtimer_setup(&nic->tx_timer, simnic_sent, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
	hrtimer_setup(&nic->irq_timer, simnic_coalesced, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
	hrtimer_setup(&nic->wire_timer, simnic_arrival, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
	nic->params.header = ETH_HLEN;
	nic->params.ring = 1;

	/* The card outlives no device and no device its card: neither ever goes. */
	/* A card that is listed with one queue has room for two: mq takes no other. */
	dev = alloc_netdev_mqs(sizeof(nic), "", NET_NAME_PREDICTABLE, simnic_setup,
			       listed ? max(listed, 2U) : 1, 1);
	if (!dev) {
		kfree(nic);
		return ERR_PTR(-ENOMEM);
	}
	*(struct simnic **)netdev_priv(dev) = nic;
	nic->dev = dev;
	snprintf(dev->name, IFNAMSIZ, "nic%u%c", pair, 'a' + end);
	eth_hw_addr_set(dev, address);

	nic->kobj.kset = simnic_kset;
	err = kobject_init_and_add(&nic->kobj, &simnic_type, NULL, "%s", dev->name);
	if (err)
		return ERR_PTR(err);
	return nic;
}

static int simnic_make_pair(unsigned int pair)
{
	struct simnic *ends[2];
	int i, err;

	for (i = 0; i < 2; i++) {
		ends[i] = simnic_make(pair, i);
		if (IS_ERR(ends[i]))
			return PTR_ERR(ends[i]);
	}
	for (i = 0; i < 2; i++) {
		ends[i]->peer = ends[1 - i];
		err = netif_set_real_num_tx_queues(ends[i]->dev,
						   max(simnic_queues_of(pair, i), 1U));
		if (err)
			return err;
		err = register_netdev(ends[i]->dev);
		if (err)
			return err;
		netif_carrier_on(ends[i]->dev);
		/* The same files beside the device's own, where it is. */
		err = sysfs_create_link(&ends[i]->dev->dev.kobj, &ends[i]->kobj, "simnic");
		if (err)
			return err;
	}
	return 0;
}

static int __init simnic_init(void)
{
	unsigned int pair;
	int err;

	if (!pairs)
		return 0;
	simnic_kset = kset_create_and_add("simnic", NULL, kernel_kobj);
	if (!simnic_kset)
		return -ENOMEM;
	for (pair = 0; pair < pairs; pair++) {
		err = simnic_make_pair(pair);
		if (err) {
			pr_err("simnic: can't make pair %u: error %d\n", pair, err);
			return err;
		}
	}
	return 0;
}
device_initcall(simnic_init);

MODULE_DESCRIPTION("Simulated network cards, joined in pairs by wires");
MODULE_LICENSE("GPL");
