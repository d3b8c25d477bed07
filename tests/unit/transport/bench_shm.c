/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * bench_shm [MIB]: compares a stream through shared memory with one memcpy of the same bytes,
 * alternating in each round. Also times a 64-byte round trip. The other side is a process that
 * copies the bytes into a buffer of 8 MiB, like a server's staging memory, or of the whole size.
 * Prints medians. Not a test: run by hand.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "transport/shm_inside.h"

#define ROUNDS  7
#define FRAME   (1u << 20)
#define STAGING (8u << 20)
#define PINGS   20000

static uint64_t soon(void)
{
	return ob_clock_ns() + 60 * OB_SECOND;
}

static void send_all(struct obt_stream *stream, const void *data, size_t size)
{
	struct iovec iov = { (void *)(uintptr_t)data, size };

	if (obt_stream_send_all(stream, &iov, 1, soon()))
		exit(1);
}

static void receive_all(struct obt_stream *stream, void *data, size_t size)
{
	if (obt_stream_recv_all(stream, data, size, soon()))
		exit(1);
}

struct order {
	uint64_t bytes, staging, pings;
};

_Noreturn static void child_main(struct obt_stream *stream, uint8_t *memory)
{
	struct order order;
	char ping[64];

	for (;;) {
		receive_all(stream, &order, sizeof order);
		for (uint64_t at = 0; at < order.bytes; at += FRAME)
			receive_all(stream, memory + at % order.staging, FRAME);
		send_all(stream, "", 1);
		for (uint64_t i = 0; i < order.pings; i++) {
			while (stream->ops->recv(stream, ping, sizeof ping, false) != sizeof ping)
				;
			send_all(stream, ping, sizeof ping);
		}
	}
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values)
{
	qsort(values, ROUNDS, sizeof *values, by_value);
	return values[ROUNDS / 2];
}

static double through(struct obt_stream *stream, const uint8_t *from, size_t bytes, size_t staging)
{
	struct order order = { bytes, staging, 0 };
	uint64_t began = ob_clock_ns();
	char done;

	send_all(stream, &order, sizeof order);
	for (size_t at = 0; at < bytes; at += FRAME)
		send_all(stream, from + at, FRAME);
	receive_all(stream, &done, 1);
	return (double)bytes / (double)(ob_clock_ns() - began);
}

static double ping(struct obt_stream *stream)
{
	struct order order = { 0, 1, PINGS };
	char bytes[64] = "";
	uint64_t began;

	send_all(stream, &order, sizeof order);
	receive_all(stream, bytes, 1);
	began = ob_clock_ns();
	for (unsigned i = 0; i < PINGS; i++) {
		send_all(stream, bytes, sizeof bytes);
		while (stream->ops->recv(stream, bytes, sizeof bytes, false) != sizeof bytes)
			;
	}
	return (double)(ob_clock_ns() - began) / PINGS;
}

int main(int argc, char **argv)
{
	size_t bytes = (argc > 1 ? strtoull(argv[1], NULL, 10) : 256) << 20;
	uint8_t *from = malloc(bytes), *to = malloc(bytes);
	double copy[ROUNDS], staged[ROUNDS], whole[ROUNDS], pings[ROUNDS];
	struct obt_stream mine, theirs;
	int fds[2], memfd;
	pid_t child;

	if (!from || !to || socketpair(AF_UNIX, SOCK_STREAM, 0, fds) != 0)
		return 1;
	memset(from, 1, bytes);
	memset(to, 1, bytes);
	obt_stream_adopt(&mine, fds[0]);
	obt_stream_adopt(&theirs, fds[1]);
	if (obt_shm_offer(&mine, NULL))
		return 1;
	memfd = dup(mine.shm->memfd);
	obt_shm_settle(&mine, OBT_SHM_VERSION);
	child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (obt_shm_attach(&theirs, memfd, true))
			exit(1);
		obt_shm_settle(&theirs, OBT_SHM_VERSION);
		memset(to, 2, bytes);
		child_main(&theirs, to);
	}
	for (unsigned r = 0; r < ROUNDS; r++) {
		uint64_t began = ob_clock_ns();

		memcpy(to, from, bytes);
		copy[r] = (double)bytes / (double)(ob_clock_ns() - began);
		staged[r] = through(&mine, from, bytes, STAGING);
		whole[r] = through(&mine, from, bytes, bytes);
		pings[r] = ping(&mine);
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	printf("memcpy %.2f GB/s; into staging %.2f, ratio %.2f; into as much memory %.2f, ratio "
	       "%.2f; 64 bytes there and back %.0f ns\n",
		median(copy), median(staged), median(staged) / median(copy), median(whole),
		median(whole) / median(copy), median(pings));
	return 0;
}
