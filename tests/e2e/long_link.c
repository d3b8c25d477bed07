/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A slow link between two network namespaces, for kernels without netem. It makes a tun device in
 * each, and delays, drops and limits the rate of the packets between them.
 *
 *     long_link NAMESPACE_A NAMESPACE_B ONE_WAY_US LOSS_PER_MILLION MBIT
 *
 * The devices are called `way`, 10.97.0.1 and 10.97.0.2. Needs root. Prints one line when it is
 * ready and ends with its standard input.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MTU     9000
/* packets held at most, a power of two; further packets are dropped */
#define PACKETS 16384u

struct packet {
	uint64_t due;
	uint32_t size;
	uint8_t bytes[MTU + 64];
};

struct way {
	int from, to;
	struct packet *ring;
	_Atomic uint32_t head, tail;
	_Atomic bool ended;
	uint64_t random;
};

static uint64_t delay_ns, loss, ns_a_byte_x1000;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void die(const char *what)
{
	perror(what);
	exit(1);
}

/* Makes the device in a namespace, sets its address and brings it up. */
static int device_make(const char *namespace, const char *address)
{
	struct ifreq request = { .ifr_flags = IFF_TUN | IFF_NO_PI };
	char path[256], command[512];
	int fd, space;

	snprintf(path, sizeof path, "/var/run/netns/%s", namespace);
	space = open(path, O_RDONLY | O_CLOEXEC);
	if (space < 0 || setns(space, CLONE_NEWNET) != 0)
		die(path);
	close(space);
	fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
	snprintf(request.ifr_name, sizeof request.ifr_name, "way");
	if (fd < 0 || ioctl(fd, TUNSETIFF, &request) != 0)
		die("/dev/net/tun");
	snprintf(command, sizeof command,
		"ip addr add %s/24 dev way && ip link set way mtu %d txqueuelen 10000 up && ip "
		"link set lo up",
		address, MTU);
	if (system(command) != 0)
		die("ip");
	return fd;
}

static void *reader(void *argument)
{
	struct way *way = argument;
	uint64_t free_at = 0;

	for (;;) {
		uint32_t head = atomic_load_explicit(&way->head, memory_order_relaxed);
		struct packet *p = &way->ring[head % PACKETS];
		ssize_t n = read(way->from, p->bytes, sizeof p->bytes);
		uint64_t now = now_ns();

		if (n <= 0)
			break;
		way->random = way->random * 6364136223846793005u + 1442695040888963407u;
		if ((way->random >> 33) % 1000000 < loss ||
			head - atomic_load_explicit(&way->tail, memory_order_acquire) >=
				PACKETS - 1)
			continue;
		free_at = (free_at > now ? free_at : now) + (uint64_t)n * ns_a_byte_x1000 / 1000;
		p->due = free_at + delay_ns;
		p->size = (uint32_t)n;
		atomic_store_explicit(&way->head, head + 1, memory_order_release);
	}
	atomic_store(&way->ended, true);
	return NULL;
}

static void *writer(void *argument)
{
	struct way *way = argument;

	while (!atomic_load(&way->ended)) {
		uint32_t tail = atomic_load_explicit(&way->tail, memory_order_relaxed);
		struct packet *p = &way->ring[tail % PACKETS];
		uint64_t now = now_ns(), until = now + 200000;

		if (tail != atomic_load_explicit(&way->head, memory_order_acquire)) {
			if (p->due <= now) {
				/*
				 * Writing to a device that is down fails: counts as a lost packet.
				 */
				ssize_t n = write(way->to, p->bytes, p->size);
				(void)n;
				atomic_store_explicit(&way->tail, tail + 1, memory_order_release);
				continue;
			}
			until = p->due < until ? p->due : until;
		}
		struct timespec ts = { .tv_nsec = (long)(until - now) };
		nanosleep(&ts, NULL); /* poll */
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static struct way ways[2];
	pthread_t thread;
	char byte;

	if (argc != 6 || atof(argv[5]) <= 0) {
		fprintf(stderr,
			"usage: long_link NAMESPACE_A NAMESPACE_B ONE_WAY_US LOSS_PER_MILLION "
			"MBIT\n");
		return 2;
	}
	delay_ns = (uint64_t)atoll(argv[3]) * 1000;
	loss = (uint64_t)atoll(argv[4]);
	ns_a_byte_x1000 = (uint64_t)(8e6 / atof(argv[5]));
	ways[0].from = ways[1].to = device_make(argv[1], "10.97.0.1");
	ways[0].to = ways[1].from = device_make(argv[2], "10.97.0.2");
	for (int i = 0; i < 2; i++) {
		ways[i].random = (uint64_t)(i + 1);
		ways[i].ring = calloc(PACKETS, sizeof *ways[i].ring);
		if (!ways[i].ring || pthread_create(&thread, NULL, reader, &ways[i]) ||
			pthread_create(&thread, NULL, writer, &ways[i]))
			die("thread");
	}
	printf("ready\n");
	fflush(stdout);
	while (read(0, &byte, 1) > 0)
		;
	return 0;
}
