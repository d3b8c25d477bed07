/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * wire NEAR FAR [MTU]: two TUN devices of these names with a link of known rate, delay and loss between
 * them, for kernels without netem. Needs root. Prints "ready", then reads lines from stdin until
 * its end: "RATE DELAY LOSS", bytes/s each way (0: no limit), seconds each way, lost packets per
 * million.
 *
 *     read from one device
 *     -> (lost?)
 *     -> leaves when earlier packets have left, size / rate later
 *     -> arrives DELAY later
 *     -> written to the other device
 *
 * A packet that would wait longer than QUEUE_S is dropped, as in a router.
 */
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define MTU_MAX 65535u
#define FLIGHT  (32u << 20) /* bytes in flight in one direction */
#define QUEUE_S 0.1

struct way {
	double free_at; /* when the last packet has been sent */
	uint32_t first, n;
	struct packet {
		double due;
		uint32_t size;
	} * packets;
	uint8_t *bytes; /* of each packet, `mtu` apart */
};

static uint32_t mtu = 2048, packets_max; /* mtu: packets are no longer */

static double rate, delay, loss;
static uint64_t seed = 88172645463325252u;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int lost(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (double)(seed >> 11) * 0x1p-53 * 1e6 < loss;
}

static int device_open(const char *name)
{
	struct ifreq request = { .ifr_flags = IFF_TUN | IFF_NO_PI };
	int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);

	strncpy(request.ifr_name, name, sizeof request.ifr_name - 1);
	if (fd < 0 || ioctl(fd, TUNSETIFF, &request) != 0) {
		perror(name);
		exit(1);
	}
	return fd;
}

static void take(struct way *way, int fd)
{
	struct packet *packet;
	ssize_t n;

	for (int i = 0; i < 64; i++) {
		uint32_t at_packet = (way->first + way->n) % packets_max;

		packet = &way->packets[at_packet];
		n = read(fd, way->bytes + (size_t)at_packet * mtu, mtu);
		if (n <= 0)
			return;
		double at = now(), leaves = way->free_at > at ? way->free_at : at;

		if (way->n == packets_max - 1 || leaves - at > QUEUE_S || lost())
			continue;
		way->free_at = leaves + (rate > 0 ? (double)n / rate : 0);
		packet->due = way->free_at + delay;
		packet->size = (uint32_t)n;
		way->n++;
	}
}

/* Returns when the next packet is due; 0: none is in flight. */
static double give(struct way *way, int fd)
{
	while (way->n && way->packets[way->first].due <= now()) {
		struct packet *packet = &way->packets[way->first];

		if (write(fd, way->bytes + (size_t)way->first * mtu, packet->size) <
			0) { /* a device that is down: lost */
		}
		way->first = (way->first + 1) % packets_max;
		way->n--;
	}
	return way->n ? way->packets[way->first].due : 0;
}

int main(int argc, char **argv)
{
	struct way ways[2] = { 0 };
	int fds[2];
	char line[128];

	if (argc > 3)
		mtu = (uint32_t)strtoul(argv[3], NULL, 10);
	if (argc < 3 || argc > 4 || mtu < 576 || mtu > MTU_MAX) {
		fprintf(stderr, "usage: wire NEAR FAR [MTU]\n");
		return 2;
	}
	packets_max = FLIGHT / mtu;
	for (int i = 0; i < 2; i++) {
		ways[i].packets = calloc(packets_max, sizeof *ways[i].packets);
		ways[i].bytes = malloc((size_t)packets_max * mtu);
		if (!ways[i].packets || !ways[i].bytes)
			return 1;
	}
	prctl(PR_SET_TIMERSLACK, 1000);
	fds[0] = device_open(argv[1]);
	fds[1] = device_open(argv[2]);
	puts("ready");
	fflush(stdout);
	for (;;) {
		struct pollfd pfds[3] = { { .fd = fds[0], .events = POLLIN },
			{ .fd = fds[1], .events = POLLIN }, { .fd = 0, .events = POLLIN } };
		double next = 0, wait;

		for (int i = 0; i < 2; i++) {
			double due = give(&ways[i], fds[!i]);

			next = due > 0 && (next <= 0 || due < next) ? due : next;
		}
		wait = next > 0 ? next - now() : 1;
		wait = wait < 0 ? 0 : wait;
		struct timespec t = { .tv_sec = (time_t)wait,
			.tv_nsec = (long)((wait - (double)(time_t)wait) * 1e9) };

		if (ppoll(pfds, 3, &t, NULL) < 0)
			continue;
		if (pfds[2].revents &&
			(!fgets(line, sizeof line, stdin) ||
				sscanf(line, "%lf %lf %lf", &rate, &delay, &loss) != 3))
			return 0;
		for (int i = 0; i < 2; i++)
			if (pfds[i].revents)
				take(&ways[i], fds[i]);
	}
}
