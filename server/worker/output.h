/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * What the driver prints for kernels (printf, assert). It writes to descriptors 1 and 2 of its
 * process, so a worker has files in memory there and forwards what is new in them after a call at
 * which CUDA would flush. The log goes to the old descriptor 2. Fetching takes a lock; any thread.
 */
#ifndef OBS_OUTPUT_H
#define OBS_OUTPUT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* bytes of one reply: one that is shown whole (OBP_CONN_BIG) */
#define OBS_OUTPUT_PIECE (16u << 10)
/*
 * bytes kept of output that no call fetches, of each of the two; the rest is lost, and a line says
 * so
 */
#define OBS_OUTPUT_MAX   (64ull << 20)
/* once so much of a file has been sent, another one takes its place */
#define OBS_OUTPUT_RENEW (1ull << 20)

/* Of OBS_OUTPUT_MAX bytes, sealed, written at the position that all who write to it share. */
struct obs_output_file {
	int fd;        /* -1: none */
	uint64_t sent; /* bytes already forwarded; below the position */
};

struct obs_output {
	pthread_mutex_t lock;
	struct obs_output_file now[2]; /* stdout, stderr */
	/* those before: a thread may have begun to write to one when another file took its place */
	struct obs_output_file old[2];
	bool captured;
};

/* Replaces descriptors 1 and 2. False: the worker prints where the server does. */
bool obs_output_capture(struct obs_output *output);
/* Passes what came since the last time on, in pieces; flags: OBP_REPLY_TEXT_STDERR or 0. */
typedef void obs_output_send(void *user, uint16_t flags, const void *text, uint32_t size);
void obs_output_forward(struct obs_output *output, obs_output_send *send, void *user);

#endif
