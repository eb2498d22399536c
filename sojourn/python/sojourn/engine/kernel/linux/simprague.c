// SPDX-License-Identifier: GPL-2.0
/*
 * Prague: a scalable congestion control for L4S.
 *
 * draft-briscoe-iccrg-prague-congestion-control describes it, RFC 9331 section
 * 4.3 has the requirements. Where the draft leaves a choice this does what the
 * simulator's prague does (docs/tcp.md), so that the two can be compared:
 * each reacts to the same events in the same order with the same arithmetic.
 *
 * The window has fractions. Each round trip it grows by one segment less the
 * marked share; marks reduce it by alpha / 2, at most once a round trip. alpha
 * averages the marked share. From the fourth round trip after slow start on,
 * a flow whose RTT is below 25 ms grows as one of 25 ms does. snd_cwnd follows
 * the window, rounded up, by a segment an ACK. At four full segments and below
 * a rate is kept in place of the window, and packets are so small that it sends
 * two in 25 ms. The window counts packets of the size of now.
 *
 * It needs AccECN and sends ECT(1). Without AccECN it is Reno without ECN.
 */

#include <linux/math64.h>
#include <linux/module.h>
#include <net/tcp.h>
#include <net/tcp_ecn.h>

#define ONE_SHIFT	20		/* a segment, of the window */
#define ONE		(1ULL << ONE_SHIFT)
#define ALPHA_SHIFT	24
#define ALPHA_ONE	(1ULL << ALPHA_SHIFT)
#define GAIN_SHIFT	4		/* g = 1/16; alpha is kept as alpha / g */
#define ROUNDS		4		/* after slow start, before RTTs count alike */
#define LEAST_CWND	2
#define RATE_CWND	4		/* a rate is kept up to so many full segments */
#define LEAST_PACKET	202ULL		/* an MSS of 150 with its headers and timestamps */
#define LEAST_RATE	12500ULL	/* bytes a second: 100 kbit/s */
#define FULL_PACKET	1500ULL		/* grows by one segment; bytes */
/* Times that meet the SRTT are in eighths of a microsecond, as it is. */
#define SECOND		(8ULL * USEC_PER_SEC)
#define SECOND_SHIFT	23		/* 2^23 of these for a second, where shifted */
#define VIRTUAL_RTT	(25ULL * 8 * USEC_PER_MSEC)
#define VIRTUAL_RTT_NS	(25ULL * NSEC_PER_MSEC)
#define SMOOTH_SHIFT	7		/* the slow average of the SRTT: 1/128 */
#define OFFSET_SHIFT	5		/* paced 1/32 above the rate, then below */

struct simprague {
	u64 window;		/* in 1 / ONE of a segment */
	u64 rate;		/* bytes a second */
	u64 lost_rate;		/* what the rate was when a loss was found */
	u64 smooth_srtt;	/* << SMOOTH_SHIFT */
	u64 alpha_at;		/* ns: alpha was updated */
	u64 reduced_at;		/* ns: marks reduced the window; 0: never */
	u32 alpha;		/* << GAIN_SHIFT */
	u32 srtt;		/* of the last ACK */
	u32 round_end;		/* snd_nxt when the round trip began */
	u32 round_delivered, round_ce;	/* what had been delivered then */
	u32 delivered, ce;	/* up to the last ACK */
	u32 rounds : 16,	/* outside of slow start */
	    by_rate : 1,
	    saw_ce : 1,
	    signalled : 1;	/* ssthresh was asked for: a window is to be reduced */
};

static bool independent(const struct sock *sk)
{
	const struct simprague *p = inet_csk_ca(sk);

	return !tcp_in_slow_start(tcp_sk(sk)) && p->rounds >= ROUNDS;
}

static bool keeps_rate(const struct sock *sk)
{
	const struct simprague *p = inet_csk_ca(sk);

	return p->by_rate && independent(sk);
}

/* Bytes of a whole packet. */
static u32 packet(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	return tp->mss_cache + tp->tcp_header_len + sizeof(struct iphdr);
}

/* The largest, which the path allows. */
static u32 full_packet(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	return tcp_mtu_to_mss(sk, inet_csk(sk)->icsk_pmtu_cookie) + tp->tcp_header_len +
	       sizeof(struct iphdr);
}

static u64 rounded(u64 dividend, u64 divisor)
{
	return div64_u64(dividend + divisor / 2, divisor);
}

/* The window that a rate fills in a smoothed SRTT. */
static u64 window_of_rate(const struct sock *sk, u32 srtt)
{
	const struct simprague *p = inet_csk_ca(sk);
	u64 rtt = p->smooth_srtt >> SMOOTH_SHIFT;
	u32 bytes = packet(sk);

	if (!rtt)
		rtt = srtt;
	return div64_u64(mul_u64_u64_shr(p->rate, rtt, SECOND_SHIFT - ONE_SHIFT) + bytes - 1,
			 bytes);
}

/* The rate that the window is in an SRTT, where the window is what is kept. */
static u64 rate_now(const struct sock *sk)
{
	const struct simprague *p = inet_csk_ca(sk);
	u64 segment;

	if (p->by_rate || !p->srtt)
		return p->rate;
	segment = div64_u64(SECOND * packet(sk), p->srtt);
	return max(mul_u64_u64_shr(segment, p->window, ONE_SHIFT), LEAST_RATE);
}

static void reduce_for_marks(struct sock *sk)
{
	struct simprague *p = inet_csk_ca(sk);
	u64 now = tcp_sk(sk)->tcp_clock_cache, alpha = p->alpha >> GAIN_SHIFT;

	if (p->reduced_at && now - p->reduced_at < VIRTUAL_RTT_NS && independent(sk))
		return;
	p->reduced_at = now;
	if (keeps_rate(sk)) {
		u64 by = mul_u64_u64_shr(p->rate, alpha, ALPHA_SHIFT + 1);

		p->rate = max(p->rate - by, LEAST_RATE);
		p->window = window_of_rate(sk, p->srtt);
	} else {
		p->window -= (p->window * alpha + ALPHA_ONE) >> (ALPHA_SHIFT + 1);
	}
}

static void reduce_for_loss(struct sock *sk)
{
	struct simprague *p = inet_csk_ca(sk);

	p->lost_rate = rate_now(sk);
	if (keeps_rate(sk)) {
		p->rate -= p->rate / 2;
		p->window = window_of_rate(sk, p->srtt);
	} else {
		p->window -= p->window / 2;
	}
}

/* Segments were delivered without a mark. */
static void grow(struct sock *sk, u64 acked)
{
	struct simprague *p = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 srtt = tp->srtt_us;

	if (tcp_in_slow_start(tp)) {
		u32 cwnd = min_t(u64, tcp_snd_cwnd(tp) + acked, tp->snd_ssthresh);

		acked -= cwnd - tcp_snd_cwnd(tp);
		tcp_snd_cwnd_set(tp, min(cwnd, tp->snd_cwnd_clamp));
		p->window = (u64)tcp_snd_cwnd(tp) << ONE_SHIFT;
		if (!acked)
			return;
	}
	if (keeps_rate(sk)) {
		u64 rtt = max_t(u64, VIRTUAL_RTT, srtt);
		u64 bytes = (u64)packet(sk) << SECOND_SHIFT;
		u64 segment = div64_u64((acked * FULL_PACKET) << SECOND_SHIFT, rtt);
		u64 segments = div64_u64(p->rate * rtt + bytes - 1, bytes);

		p->rate += rounded(segment, max(segments, 1ULL));
		p->window = max(p->window + acked, window_of_rate(sk, srtt));
	} else {
		u64 increase = ONE, grown;

		/* Of a short RTT by its square: both the window and a round trip are less. */
		if (srtt && srtt < VIRTUAL_RTT && p->rounds >= ROUNDS)
			increase = rounded(((u64)srtt * srtt) << ONE_SHIFT,
					   VIRTUAL_RTT * VIRTUAL_RTT);
		grown = rounded((acked * increase) << ONE_SHIFT, max(p->window, 1ULL));
		p->window += max(div64_u64(grown * FULL_PACKET, packet(sk)), acked);
	}
}

/* snd_cwnd follows the window. */
static void step(struct sock *sk)
{
	struct simprague *p = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u64 wanted = max_t(u64, (p->window + ONE - 1) >> ONE_SHIFT, LEAST_CWND);
	u32 cwnd = tcp_snd_cwnd(tp);

	if (wanted > cwnd) {
		tcp_snd_cwnd_set(tp, min(cwnd + 1, tp->snd_cwnd_clamp));
	} else if (wanted < cwnd) {
		tcp_snd_cwnd_set(tp, cwnd - 1);
		tp->snd_ssthresh = cwnd - 1;
	}
}

static void end_round(struct sock *sk)
{
	struct simprague *p = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (before(tp->snd_una, p->round_end) ||
	    (independent(sk) && tp->tcp_clock_cache - p->alpha_at < VIRTUAL_RTT_NS))
		return;
	if (p->saw_ce) {
		u32 delivered = max(tp->delivered - p->round_delivered, 1U);
		u64 share = (tp->delivered_ce - p->round_ce) * ALPHA_ONE;

		p->alpha = min(p->alpha - (p->alpha >> GAIN_SHIFT) + div_u64(share, delivered),
			       ALPHA_ONE << GAIN_SHIFT);
		p->alpha_at = tp->tcp_clock_cache;
	}
	p->smooth_srtt += tp->srtt_us - (p->smooth_srtt >> SMOOTH_SHIFT);
	if (!tcp_in_slow_start(tp) && p->rounds < ROUNDS)
		p->rounds++;
	p->round_end = tp->snd_nxt;
	p->round_delivered = tp->delivered;
	p->round_ce = tp->delivered_ce;
}

static void pace(struct sock *sk)
{
	struct simprague *p = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u64 rate;

	if (!tp->srtt_us)
		return;
	if (keeps_rate(sk)) {
		u64 half_us = max_t(u64, VIRTUAL_RTT, tp->srtt_us) / 16;
		u64 offset = p->rate >> OFFSET_SHIFT;

		if (half_us <= div_u64(tp->tcp_clock_cache - p->alpha_at, NSEC_PER_USEC))
			rate = p->rate - offset;
		else
			rate = p->rate + offset;
	} else {
		u64 segments = max_t(u64, p->window >> ONE_SHIFT, tcp_packets_in_flight(tp));

		p->rate = max(div_u64(SECOND * packet(sk), tp->srtt_us) * segments, LEAST_RATE);
		rate = p->rate;
	}
	if (2 * (u64)tcp_snd_cwnd(tp) < tp->snd_ssthresh)
		rate *= 2;
	WRITE_ONCE(sk->sk_pacing_rate, min_t(u64, rate, READ_ONCE(sk->sk_max_pacing_rate)));
}

/* Two fit into a virtual RTT, as long as the rate is what is kept. */
static void size_packets(struct sock *sk)
{
	struct simprague *p = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 bytes = full_packet(sk), was = packet(sk);

	if (keeps_rate(sk)) {
		u64 in_virtual_rtt = div64_u64(p->rate * VIRTUAL_RTT, SECOND);

		bytes = min_t(u64, max(in_virtual_rtt / 2, LEAST_PACKET), bytes);
	}
	if (bytes == was)
		return;
	p->window = div64_u64(p->window * was, bytes);
	tp->mss_cache = bytes - tp->tcp_header_len - sizeof(struct iphdr);
}

static void simprague_control(struct sock *sk, u32 ack, int flag,
			      const struct rate_sample *rs)
{
	struct simprague *p = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 acked = tp->delivered - p->delivered, ce = tp->delivered_ce - p->ce;

	/* The SYN-ACK comes before init. */
	if (!inet_csk(sk)->icsk_ca_initialized)
		return;
	p->delivered = tp->delivered;
	p->ce = tp->delivered_ce;
	if (!p->srtt)
		p->smooth_srtt = (u64)tp->srtt_us << SMOOTH_SHIFT;
	p->srtt = tp->srtt_us;
	if (ce && !p->saw_ce) {
		p->saw_ce = 1;
		p->window = (p->window + 1) / 2;
	}
	if (acked > ce && tcp_is_cwnd_limited(sk) &&
	    inet_csk(sk)->icsk_ca_state < TCP_CA_Recovery)
		grow(sk, acked - ce);
	step(sk);
	end_round(sk);
	pace(sk);
	p->by_rate = p->saw_ce &&
		     tcp_snd_cwnd(tp) * packet(sk) <= RATE_CWND * full_packet(sk);
	size_packets(sk);
	if (keeps_rate(sk))
		p->window = window_of_rate(sk, p->srtt);
}

/*
 * A window of data is to be reduced. What for shows in the event or the state
 * that follows: a timeout's state comes when snd_cwnd is 1 already.
 */
static u32 simprague_ssthresh(struct sock *sk)
{
	struct simprague *p = inet_csk_ca(sk);

	p->signalled = 1;
	return tcp_sk(sk)->snd_ssthresh;
}

static void simprague_state(struct sock *sk, u8 state)
{
	struct simprague *p = inet_csk_ca(sk);

	if (!p->signalled)
		return;
	p->signalled = 0;
	if (state == TCP_CA_CWR)
		reduce_for_marks(sk);
	else
		reduce_for_loss(sk);
}

static void simprague_event(struct sock *sk, enum tcp_ca_event event)
{
	if (event == CA_EVENT_LOSS)
		simprague_state(sk, TCP_CA_Loss);
}

/* What was lost is back. */
static u32 simprague_undo(struct sock *sk)
{
	struct simprague *p = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	p->rate = max(rate_now(sk), p->lost_rate);
	if (p->srtt)
		p->window = window_of_rate(sk, p->srtt);
	return max(tcp_snd_cwnd(tp), tp->prior_cwnd);
}

static struct tcp_congestion_ops simprague_reno;

static void simprague_init(struct sock *sk)
{
	struct simprague *p = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	memset(p, 0, sizeof(*p));
	if (!tcp_ecn_mode_accecn(tp)) {
		inet_csk(sk)->icsk_ca_ops = &simprague_reno;
		return;
	}
	p->window = (u64)tcp_snd_cwnd(tp) << ONE_SHIFT;
	p->rate = LEAST_RATE;
	p->round_end = tp->snd_una;
	p->round_delivered = tp->delivered;
	p->round_ce = tp->delivered_ce;
	p->delivered = tp->delivered;
	p->ce = tp->delivered_ce;
	cmpxchg(&sk->sk_pacing_status, SK_PACING_NONE, SK_PACING_NEEDED);
}

static struct tcp_congestion_ops simprague __read_mostly = {
	.init		= simprague_init,
	.cong_control	= simprague_control,
	.ssthresh	= simprague_ssthresh,
	.set_state	= simprague_state,
	.cwnd_event	= simprague_event,
	.undo_cwnd	= simprague_undo,
	.flags		= TCP_CONG_NEEDS_ECN | TCP_CONG_NEEDS_ACCECN |
			  TCP_CONG_NO_FALLBACK_RFC3168 | TCP_CONG_ECT_1_NEGOTIATION,
	.owner		= THIS_MODULE,
	.name		= "prague",
};

/* What there is without AccECN. */
static struct tcp_congestion_ops simprague_reno __read_mostly = {
	.ssthresh	= tcp_reno_ssthresh,
	.cong_avoid	= tcp_reno_cong_avoid,
	.undo_cwnd	= tcp_reno_undo_cwnd,
	.owner		= THIS_MODULE,
	.name		= "prague-reno",
};

static int __init simprague_register(void)
{
	BUILD_BUG_ON(sizeof(struct simprague) > ICSK_CA_PRIV_SIZE);
	return tcp_register_congestion_control(&simprague);
}
late_initcall(simprague_register);

MODULE_DESCRIPTION("Prague congestion control, as the simulator has it");
MODULE_LICENSE("GPL");
