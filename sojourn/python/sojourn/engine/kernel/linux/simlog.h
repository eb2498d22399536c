/* SPDX-License-Identifier: GPL-2.0 */
/*
 * simlog: what simulated cards did to each packet, event by event.
 *
 * /dev/simlog hands out the events in the order in which they happened, each a
 * struct simlog_event. Nothing is noted before it is opened, and what was noted
 * before is not handed out. One process at a time.
 */
#ifndef _SIMLOG_H
#define _SIMLOG_H

#include <linux/skbuff.h>
#include <net/sock.h>

enum simlog_what {
	SIMLOG_CAME,	/* a packet comes to the device, before its qdisc */
	SIMLOG_LEFT,	/* its driver gets it, after the qdisc */
	SIMLOG_GONE,	/* thrown away in between */
	SIMLOG_OUT,	/* its last bit is on the wire */
	SIMLOG_LOST,	/* the wire loses it, at that time */
	SIMLOG_RTT,	/* an ACK of new data gives an RTT sample: bytes has it, in us */
	SIMLOG_MISSED,	/* so many events found no room: bytes */
};

struct simlog_event {
	u64 t_ns;	/* CLOCK_MONOTONIC */
	u32 serial;	/* of the packet at its card, from 1 on */
	u32 bytes;	/* of the IP packet */
	u32 hash;	/* by which queues tell flows apart: skb_get_hash() */
	__be32 from;
	__be32 to;
	__be16 ports[2];	/* ICMP echo: its identifier, twice */
	u16 card;	/* as the card was told */
	u8 what;
	u8 ds;		/* of the IP header */
	u8 protocol;
	u8 truesize[3];	/* as it came, in bytes, low ones first */
};

/* By the driver. A packet that has come and that no driver has got yet has a serial: skb->simlog_serial. */
void simlog_left(struct sk_buff *skb, u16 card, u32 serial);
void simlog_note(enum simlog_what what, u16 card, u32 serial, u64 t_ns);

/* From TCP: @rtt_us is a sample of a connection. */
void simlog_rtt(const struct sock *sk, long rtt_us);

/* The driver's: whether a packet's device is a card that is logged, its number, its latest serial. */
bool simlog_card_of(const struct sk_buff *skb, u16 *card, u32 **serial);

#endif
