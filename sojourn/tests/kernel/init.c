/*
 * A small first program for tests of the guest. /mode contains "measure", "probe" (sojourn-probe at both ends), or a way
 * to fail.
 * The guest has a wire of 10 Mbit/s and 10 ms: this end is in the first network namespace, the other in its own.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/ip_icmp.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "first.h"

#define CARD "/sys/kernel/simnic/"

static const char *get(const char *path)
{
	static char text[256];
	int file = open(path, O_RDONLY);
	ssize_t got = file < 0 ? -1 : read(file, text, sizeof(text) - 1);

	if (got < 0)
		fail(path);
	close(file);
	text[got] = 0;
	text[strcspn(text, "\n")] = 0;
	return text;
}

static long long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void ping(int bytes)
{
	int socket_ = socket(AF_INET, SOCK_RAW, IPPROTO_ICMP), size = bytes - 20;
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = inet_addr("10.0.0.2") };
	unsigned char out[2048] = { ICMP_ECHO }, in[2048];
	struct icmphdr *header = (void *)out;
	long long sent, got;

	header->un.echo.id = 7;
	header->checksum = ~(ICMP_ECHO + 7);
	sent = now();
	if (sendto(socket_, out, size, 0, (void *)&to, sizeof(to)) != size)
		fail("sendto");
	while (recv(socket_, in, sizeof(in), 0) < 21 || in[20] != ICMP_ECHOREPLY)
		;
	got = now();
	printf("rtt %d %lld\n", bytes, got - sent);
	close(socket_);
}

/* Opens sockets at both ends of the wire. The caller stays in this end's namespace. */
static void open_ends(int near, int far, int *out, int *in)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(9) };
	int one = 1, room = 1 << 20;

	*out = socket(AF_INET, SOCK_DGRAM, 0);
	setns(far, CLONE_NEWNET);
	*in = socket(AF_INET, SOCK_DGRAM, 0);
	setns(near, CLONE_NEWNET);
	setsockopt(*in, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof(one));
	setsockopt(*in, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room));
	setsockopt(*out, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room));
	if (bind(*in, (void *)&to, sizeof(to)))
		fail("bind");
	to.sin_addr.s_addr = inet_addr("10.0.0.2");
	if (connect(*out, (void *)&to, sizeof(to)))
		fail("connect");
}

static void send_datagram(int out, int bytes)
{
	static const char data[2048];

	if (send(out, data, bytes - 28, 0) < 0)
		fail("send");
}

/* Returns the next datagram's time of arrival, from the kernel's time stamp. */
static long long arrival(int in)
{
	static char data[2048], control[256];
	struct iovec piece = { data, sizeof(data) };
	struct msghdr message = { .msg_iov = &piece, .msg_iovlen = 1, .msg_control = control,
				  .msg_controllen = sizeof(control) };
	struct timespec t;

	if (recvmsg(in, &message, 0) < 0)
		fail("recvmsg");
	memcpy(&t, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(t));
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* Sends datagrams that fill the link. */
static void burst(int near, int far, int count, int bytes)
{
	int out, in;

	open_ends(near, far, &out, &in);
	for (int i = 0; i < count; i++)
		send_datagram(out, bytes);
	for (int i = 0; i < count; i++)
		printf("arrival %lld\n", arrival(in));
	close(in);
	close(out);
}

static long long today(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/*
 * Halves the rate in the middle of a transmission, then makes an outage in another one. Prints the times since the
 * datagram was sent: of the change, of its end (for the outage), and of the arrival.
 */
static void changes(int near, int far)
{
	long long sent, changed, back;
	int out, in;

	open_ends(near, far, &out, &in);
	sent = today();
	send_datagram(out, 1500);
	usleep(500);
	changed = today();
	put(CARD "nic0a/rate_bps", "5000000");
	printf("slower %lld %lld\n", changed - sent, arrival(in) - sent);

	put(CARD "nic0a/rate_bps", "10000000");
	sent = today();
	send_datagram(out, 1500);
	usleep(500);
	changed = today();
	put(CARD "nic0a/stopped", "1");
	usleep(100000);
	back = today();
	put(CARD "nic0a/stopped", "0");
	printf("outage %lld %lld %lld\n", changed - sent, back - sent, arrival(in) - sent);
	close(in);
	close(out);
}

static int second_namespace(void)
{
	int ready[2];
	char path[64], number[16], byte;
	pid_t far;

	if (pipe(ready))
		fail("pipe");
	far = fork();
	if (!far) {
		unshare(CLONE_NEWNET);
		if (write(ready[1], "x", 1) == 1)
			pause();
		_exit(1);
	}
	if (read(ready[0], &byte, 1) != 1)
		fail("read");
	snprintf(number, sizeof(number), "%d", far);
	run("/bin/ip", "link", "set", "nic0b", "netns", number, NULL);
	snprintf(path, sizeof(path), "/proc/%d/ns/net", far);
	return open(path, O_RDONLY);
}

/* Configures both ends. Returns the far end's namespace. */
static int wire(int near)
{
	static const char *const ends[] = { "nic0a", "nic0b" };
	char path[64];
	int far;

	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), CARD "%s/rate_bps", ends[i]);
		put(path, "10000000");
		snprintf(path, sizeof(path), CARD "%s/delay_ns", ends[i]);
		put(path, "10000000");
	}
	far = second_namespace();
	run("/bin/ip", "addr", "add", "10.0.0.1/24", "dev", "nic0a", NULL);
	run("/bin/ip", "link", "set", "nic0a", "up", NULL);
	run("/bin/tc", "qdisc", "add", "dev", "nic0a", "root", "pfifo", "limit", "1000", NULL);
	setns(far, CLONE_NEWNET);
	run("/bin/ip", "addr", "add", "10.0.0.2/24", "dev", "nic0b", NULL);
	run("/bin/ip", "link", "set", "nic0b", "up", NULL);
	setns(near, CLONE_NEWNET);
	return far;
}

static void share(void)
{
	if (mount("none", "/host", "hostfs", 0, NULL))
		fail("hostfs");
}

static void results(const void *bytes, size_t count)
{
	int archive = open("/host/results.tar", O_CREAT | O_WRONLY | O_TRUNC, 0644);

	if (write(archive, bytes, count) != (ssize_t)count)
		fail("results.tar");
	close(archive);
}

/* Runs sojourn-probe as a server at the far end, and as a client at this one. */
static void probe(void)
{
	int near = open("/proc/self/ns/net", O_RDONLY), far;
	pid_t server;

	if (mount("devtmpfs", "/dev", "devtmpfs", 0, NULL) && errno != EBUSY)
		fail("devtmpfs");
	share();
	far = wire(near);
	server = fork();
	if (!server) {
		setns(far, CLONE_NEWNET);
		execl("/host/sojourn-probe", "sojourn-probe", "serve", "--bind", "10.0.0.2", NULL);
		_exit(1);
	}
	usleep(200000);
	run("/host/sojourn-probe", "measure", "10.0.0.2", "-o", "/host/session.json", "--idle", "2s", "-l", "4s", NULL);
	results("", 0);
}

static void measure(void)
{
	int near = open("/proc/self/ns/net", O_RDONLY), far, out, in;
	unsigned int random;

	far = wire(near);
	ping(84); /* the first ping also resolves the address */
	ping(84);
	ping(1500);
	burst(near, far, 50, 1500);
	changes(near, far);
	put(CARD "nic0a/overhead", "38");
	put(CARD "nic0a/ring", "8");
	put(CARD "nic0a/bql", "1");
	burst(near, far, 50, 1500);
	put(CARD "nic0a/loss_key", "1");
	put(CARD "nic0a/loss_good", "9007199254740992");
	open_ends(near, far, &out, &in);
	for (int i = 0; i < 5; i++)
		send_datagram(out, 100);
	sleep(1);
	printf("lost %s\n", get(CARD "nic0a/lost_packets"));
	printf("ring %s\n", get("/sys/class/net/nic0a/simnic/ring"));
	printf("left %s\n", get(CARD "nic0a/ring_packets"));
	printf("inflight %s\n", get(CARD "nic0a/bql_inflight"));
	printf("memory %s\n", get("/proc/meminfo"));
	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		fail("getrandom");
	printf("random %u\n", random);
	share();
	results(&random, sizeof(random));
}

int main(void)
{
	static char mode[256];

	setvbuf(stdout, NULL, _IONBF, 0);
	mount("proc", "/proc", "proc", 0, NULL);
	mount("sysfs", "/sys", "sysfs", 0, NULL);
	puts("@BOOT");
	strcpy(mode, get("/mode"));
	if (!strcmp(mode, "spin"))
		for (volatile int i = 0;; i++)
			;
	if (!strcmp(mode, "exit"))
		return 3;
	if (!strcmp(mode, "fail")) {
		errno = ENODEV;
		fail("a device");
	}
	if (!strcmp(mode, "eat"))
		for (;;)
			memset(malloc(1 << 20), 1, 1 << 20);
	if (!strcmp(mode, "leave"))
		reboot(RB_POWER_OFF);
	if (strcmp(mode, "probe"))
		measure();
	else
		probe();
	puts("@END");
	reboot(RB_POWER_OFF);
}
