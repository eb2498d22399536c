/*
 * waits WORD: a program of two threads. One waits for a flag, in the way of the word, and the other
 * sets it after 1 ms. `waits processor` prints what the processor tells a program.
 */
#define _GNU_SOURCE
#include <cpuid.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

static volatile int flag;
static const char *how;

static long long now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void *wait_for_flag(void *none)
{
	int s = socket(AF_INET, SOCK_DGRAM, 0);
	unsigned int a, b, c, d;
	char byte;

	while (!flag) {
		if (!strcmp(how, "yield"))
			sched_yield();
		else if (!strcmp(how, "receive"))
			recv(s, &byte, 1, MSG_DONTWAIT);
		else if (!strcmp(how, "clock"))
			now_ns();
		else if (!strcmp(how, "call"))
			getppid();
		else if (!strcmp(how, "rdtsc"))
			__rdtsc();
		else if (!strcmp(how, "cpuid"))
			__cpuid(0, a, b, c, d);
	}
	return none;
}

static void processor(void)
{
	unsigned int a, b, c, d, core = 7;
	unsigned long long first = __rdtsc(), second = __rdtsc(), third = __rdtscp(&core);

	printf("rdtsc after %llu ns, rdtscp %s\n", second - first, third > second ? "later" : "earlier");
	printf("core %u\n", core);
	__cpuid(1, a, b, c, d);
	printf("rdrand %d, apic %u\n", !!(c & bit_RDRND), b >> 24);
	__cpuid_count(7, 0, a, b, c, d);
	printf("rdseed %d, rtm %d\n", !!(b & 1U << 18), !!(b & 1U << 11));
	__cpuid_count(0xb, 0, a, b, c, d);
	printf("x2apic %u\n", d);
}

int main(int count, char **words)
{
	long long start = now_ns();
	pthread_t thread;

	how = count > 1 ? words[1] : "";
	if (!strcmp(how, "processor")) {
		processor();
		return 0;
	}
	pthread_create(&thread, NULL, wait_for_flag, NULL);
	usleep(1000);
	flag = 1;
	pthread_join(thread, NULL);
	printf("%s: %lld us\n", how, (now_ns() - start) / 1000);
	return 0;
}
