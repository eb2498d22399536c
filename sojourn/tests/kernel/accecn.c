/*
 * Plays the peer of the guest's kernel in TCP connections with AccECN, byte by byte. It records the
 * kernel's handshake for each ECN field and each ACE, and the packets after the handshake.
 * Prints one line per connection, "server ..." or "client ...": this program's packets | the kernel's.
 * sojourn/tests/kernel/test_accecn.py explains the numbers.
 *
 * The kernel has the address 10.0.0.1 on one end of a veth pair. The other end has no address: this
 * program uses it through a packet socket, as 10.0.0.2.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <linux/tcp.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "first.h"

#define SYN 0x02
#define PSH 0x08
#define ACK 0x10
#define RST 0x04
#define MSS 1000

typedef unsigned char u8;
typedef unsigned int u32;

struct packet {
	u32 seq, ack;
	int flags, ace, ecn, bytes;
	int fields; /* of the option AccECN; -1: none */
	u32 counter[3];
};

static int wire;
static u8 macs[2][6]; /* the kernel's end, ours */
static unsigned short near, far; /* ports: the kernel's, ours */
static u32 tsval, tsecr;

static void mac(const char *name, u8 *to)
{
	char path[64], text[32] = "";
	int file;

	snprintf(path, sizeof(path), "/sys/class/net/%s/address", name);
	file = open(path, O_RDONLY);
	if (file < 0 || read(file, text, sizeof(text) - 1) < 17)
		fail(path);
	close(file);
	sscanf(text, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", to, to + 1, to + 2, to + 3, to + 4, to + 5);
}

static u32 sum(const u8 *bytes, int count, u32 start)
{
	for (int i = 0; i < count; i++)
		start += bytes[i] << (i & 1 ? 0 : 8);
	while (start >> 16)
		start = (start & 0xffff) + (start >> 16);
	return start;
}

static void big(u8 *at, u32 value, int bytes)
{
	while (bytes--) {
		at[bytes] = value;
		value >>= 8;
	}
}

static u32 read_big(const u8 *at, int bytes)
{
	u32 value = 0;

	while (bytes--)
		value = value << 8 | *at++;
	return value;
}

/* Sends a packet to the kernel, with time stamps. A SYN offers an MSS and SACK, too. */
static void send_packet(const struct packet *p)
{
	u8 frame[2048] = { 0 }, *ip = frame + 14, *tcp = ip + 20, *option = tcp + 20;
	struct sockaddr_ll to = { .sll_family = AF_PACKET, .sll_halen = 6,
				  .sll_ifindex = if_nametoindex("v1") };
	u8 pseudo[12];
	int length, i;

	memcpy(frame, macs[0], 6);
	memcpy(frame + 6, macs[1], 6);
	big(frame + 12, ETHERTYPE_IP, 2);
	if (p->flags & SYN) {
		memcpy(option, (u8[]){ 2, 4, MSS >> 8, MSS & 255, 4, 2 }, 6);
		option += 6;
	} else {
		memcpy(option, (u8[]){ 1, 1 }, 2);
		option += 2;
	}
	memcpy(option, (u8[]){ 8, 10 }, 2);
	big(option + 2, ++tsval, 4);
	big(option + 6, tsecr, 4);
	option += 10;
	if (p->fields >= 0) {
		*option++ = 174;
		*option++ = 2 + 3 * p->fields;
		for (i = 0; i < p->fields; i++, option += 3)
			big(option, p->counter[i], 3);
		while ((option - tcp) & 3)
			*option++ = 1;
	}
	length = option - ip + p->bytes;
	ip[0] = 0x45;
	ip[1] = p->ecn;
	big(ip + 2, length, 2);
	ip[8] = 64;
	ip[9] = IPPROTO_TCP;
	memcpy(ip + 12, (u8[]){ 10, 0, 0, 2, 10, 0, 0, 1 }, 8);
	big(ip + 10, ~sum(ip, 20, 0), 2);
	big(tcp, far, 2);
	big(tcp + 2, near, 2);
	big(tcp + 4, p->seq, 4);
	big(tcp + 8, p->ack, 4);
	tcp[12] = (option - tcp) << 2 | (p->ace >> 2 & 1);
	tcp[13] = p->flags | (p->ace & 3) << 6;
	big(tcp + 14, 60000, 2);
	memcpy(pseudo, ip + 12, 8);
	big(pseudo + 8, IPPROTO_TCP, 2);
	big(pseudo + 10, length - 20, 2);
	big(tcp + 16, ~sum(tcp, length - 20, sum(pseudo, 12, 0)), 2);
	memcpy(to.sll_addr, macs[0], 6);
	if (sendto(wire, frame, 14 + length, 0, (void *)&to, sizeof(to)) < 0)
		fail("sendto");
}

/* Receives the kernel's next TCP packet. Returns 0 if none arrives within `ms`. */
static int receive(struct packet *p, int ms)
{
	u8 frame[4096], *ip = frame + 14, *tcp, *option, *end;
	struct pollfd ready = { .fd = wire, .events = POLLIN };
	struct sockaddr_ll from;
	socklen_t size;

	for (;;) {
		if (poll(&ready, 1, ms) <= 0)
			return 0;
		size = sizeof(from);
		if (recvfrom(wire, frame, sizeof(frame), 0, (void *)&from, &size) < 54)
			continue;
		if (from.sll_pkttype == PACKET_OUTGOING || read_big(frame + 12, 2) != ETHERTYPE_IP ||
		    ip[9] != IPPROTO_TCP)
			continue;
		tcp = ip + 20;
		memset(p, 0, sizeof(*p));
		p->ecn = ip[1] & 3;
		p->seq = read_big(tcp + 4, 4);
		p->ack = read_big(tcp + 8, 4);
		p->flags = tcp[13] & 0x3f;
		p->ace = (tcp[12] & 1) << 2 | tcp[13] >> 6;
		p->bytes = read_big(ip + 2, 2) - 20 - (tcp[12] >> 4) * 4;
		p->fields = -1;
		near = read_big(tcp, 2);
		end = tcp + (tcp[12] >> 4) * 4;
		for (option = tcp + 20; option < end && *option;) {
			if (*option == 1) {
				option++;
				continue;
			}
			if (*option == 8)
				tsecr = read_big(option + 2, 4);
			if (*option == 174) {
				p->fields = (option[1] - 2) / 3;
				for (int i = 0; i < p->fields; i++)
					p->counter[i] = read_big(option + 2 + 3 * i, 3);
			}
			option += option[1];
		}
		return 1;
	}
}

static void drain(void)
{
	struct packet p;

	while (receive(&p, 1))
		;
}

static u32 delivered_ce(int socket_)
{
	struct tcp_info info = { 0 };
	socklen_t size = sizeof(info);

	getsockopt(socket_, IPPROTO_TCP, TCP_INFO, &info, &size);
	return info.tcpi_delivered_ce;
}

static void reset(u32 seq, u32 ack)
{
	struct packet p = { .seq = seq, .ack = ack, .flags = RST | ACK, .fields = -1 };

	send_packet(&p);
	drain();
}

static struct sockaddr_in address(const char *ip, int port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(port),
				     .sin_addr.s_addr = inet_addr(ip) };
}

static int made(const char *control)
{
	int made = socket(AF_INET, SOCK_STREAM, 0);

	if (setsockopt(made, IPPROTO_TCP, TCP_CONGESTION, control, strlen(control)))
		fail(control);
	return made;
}

/*
 * The kernel is the server. Sends a SYN and the last ACK, each with this ACE and ECN field, and a segment
 * with ECT(0). The ACK and the segment have the option if `option` is set.
 * Prints the SYN-ACK and the ACK of the data: ACE, ECN field, counters of the option.
 */
static void server(const char *control, int syn_ace, int syn_ecn, int last_ace, int last_ecn, int option)
{
	static int port = 2000;
	struct sockaddr_in to = address("10.0.0.1", ++port);
	struct packet p, synack, ack;
	int listening = made(control), accepted;

	far = 40000 + port % 20000;
	near = port;
	if (bind(listening, (void *)&to, sizeof(to)) || listen(listening, 4))
		fail("listen");
	tsecr = 0;
	p = (struct packet){ .seq = 99, .flags = SYN, .ace = syn_ace, .ecn = syn_ecn, .fields = -1 };
	send_packet(&p);
	if (!receive(&synack, 500))
		fail("no SYN-ACK");
	p = (struct packet){ .seq = 100, .ack = synack.seq + 1, .flags = ACK, .ace = last_ace,
			     .ecn = last_ecn, .fields = option ? 3 : -1, .counter = { 1, 0, 1 } };
	send_packet(&p);
	accepted = accept(listening, NULL, NULL);
	p.flags |= PSH;
	p.ace = 5;
	p.ecn = 2;
	p.bytes = 500;
	send_packet(&p);
	if (!receive(&ack, 500))
		fail("no ACK");
	printf("server %s %d %d %d %d %d | %d %d %d | %d %d %d\n", control, syn_ace, syn_ecn, last_ace,
	       last_ecn, option, synack.ace, synack.ecn, synack.fields, ack.ace, ack.ecn, ack.fields);
	reset(600, synack.seq + 1);
	close(accepted);
	close(listening);
	drain();
}

/*
 * The kernel is the client. Sends a SYN-ACK (ACE, ECN field, with the option if `option` is set), then the
 * ACK of the first two segments (ACE, and the CE bytes in its option; -1: no option).
 * Prints ACE and ECN field of the SYN, of the last ACK and of the first data. Then prints the kernel's
 * count of packets delivered with CE before and after the ACK, and the ECN field of the next data.
 */
static void client(const char *control, int ace, int ecn, int option, int ack_ace, int ack_ce)
{
	static int port = 5000;
	struct sockaddr_in from = address("10.0.0.1", ++port), to = address("10.0.0.2", 80);
	struct packet syn, last, data, next, p;
	static char bytes[20000];
	int socket_ = made(control), before, after, left;

	far = 80;
	bind(socket_, (void *)&from, sizeof(from));
	fcntl(socket_, F_SETFL, O_NONBLOCK);
	connect(socket_, (void *)&to, sizeof(to));
	if (!receive(&syn, 500))
		fail("no SYN");
	p = (struct packet){ .seq = 99, .ack = syn.seq + 1, .flags = SYN | ACK, .ace = ace, .ecn = ecn,
			     .fields = option ? 3 : -1, .counter = { 1, 0, 1 } };
	send_packet(&p);
	if (!receive(&last, 500))
		fail("no last ACK");
	before = delivered_ce(socket_);
	if (write(socket_, bytes, sizeof(bytes)) < 0)
		fail("write");
	if (!receive(&data, 500) || data.bytes == 0)
		fail("no data");
	for (left = 9; left && receive(&next, 50); left--)
		;
	p = (struct packet){ .seq = 100, .ack = syn.seq + 1 + 2 * data.bytes, .flags = ACK, .ace = ack_ace,
			     .fields = ack_ce < 0 ? -1 : 3,
			     .counter = { 1, ack_ce, 1 + 2 * data.bytes - ack_ce } };
	send_packet(&p);
	if (!receive(&next, 500))
		next.ecn = -1;
	after = delivered_ce(socket_);
	printf("client %s %d %d %d %d %d | %d %d | %d %d | %d %d | %d %d %d\n", control, ace, ecn, option,
	       ack_ace, ack_ce < 0 ? -1 : ack_ce > 0, syn.ace, syn.ecn, last.ace, last.ecn, data.ace, data.ecn,
	       before, after, next.ecn);
	reset(100, syn.seq + 1);
	close(socket_);
	drain();
}

int main(void)
{
	static char *const controls[] = { "cubic", "dctcp", "prague" };
	/* The ACE that reports an unchanged ECN field of SYN and SYN-ACK: Not-ECT, ECT(0), ECT(1). */
	static const int good[] = { 2, 4, 3 };
	struct sockaddr_ll own = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_IP) };
	int none;

	setvbuf(stdout, NULL, _IONBF, 0);
	mount("proc", "/proc", "proc", 0, NULL);
	mount("sysfs", "/sys", "sysfs", 0, NULL);
	puts("@BOOT");
	put("/proc/sys/net/ipv4/tcp_ecn", "3");
	run("/bin/ip", "link", "add", "v0", "type", "veth", "peer", "name", "v1", NULL);
	mac("v0", macs[0]);
	mac("v1", macs[1]);
	run("/bin/ip", "addr", "add", "10.0.0.1/24", "dev", "v0", NULL);
	run("/bin/ip", "link", "set", "v0", "gso_max_segs", "1", NULL);
	run("/bin/ip", "link", "set", "v0", "up", NULL);
	run("/bin/ip", "link", "set", "v1", "up", NULL);
	{
		char text[32];

		snprintf(text, sizeof(text), "%02x:%02x:%02x:%02x:%02x:%02x", macs[1][0], macs[1][1], macs[1][2],
			 macs[1][3], macs[1][4], macs[1][5]);
		run("/bin/ip", "neigh", "add", "10.0.0.2", "lladdr", text, "dev", "v0", NULL);
	}
	wire = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_IP));
	own.sll_ifindex = if_nametoindex("v1");
	if (wire < 0 || bind(wire, (void *)&own, sizeof(own)))
		fail("packet socket");
	for (int c = 0; c < 3; c++) {
		/* The SYN arrives with each ACE, and with each ECN field. */
		for (int ace = 0; ace < 8; ace++)
			server(controls[c], ace, 0, 0, 0, ace == 7);
		for (int ecn = 0; ecn < 4; ecn++)
			server(controls[c], 7, ecn, good[c], 0, 1);
		/* The last ACK reports each field of the SYN-ACK, and arrives with each. */
		for (int ace = 0; ace < 8; ace++)
			for (int ecn = 0; ecn < 4; ecn++)
				server(controls[c], 7, 0, ace, ecn, 1);
		server(controls[c], 7, 0, good[c], 0, 0);
		/* The SYN-ACK reports each field of the SYN, and arrives with each. */
		for (int ace = 0; ace < 8; ace++)
			for (int ecn = 0; ecn < 4; ecn++)
				client(controls[c], ace, ecn, 1, 5, 0);
		/* ACKs with each ACE, with the option and without it. */
		for (int ace = 0; ace < 8; ace++) {
			client(controls[c], good[c], 0, 1, ace, (ace - 5) & 7 ? 1000 : 0);
			client(controls[c], good[c], 0, 0, ace, -1);
			client(controls[c], good[c], 0, 1, ace, -1);
		}
	}
	mount("none", "/host", "hostfs", 0, NULL);
	none = open("/host/results.tar", O_CREAT | O_WRONLY | O_TRUNC, 0644);
	close(none);
	puts("@END");
	reboot(RB_POWER_OFF);
	return 0;
}
