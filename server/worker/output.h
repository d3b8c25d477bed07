/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * What kernels print (printf, assert). The driver writes it to descriptors 1 and 2 of its process.
 * A worker therefore replaces these by memory files, and forwards what is new in them after each
 * call at which CUDA would flush. The log goes to the old descriptor 2. Fetching takes a lock; any
 * thread.
 */
#ifndef OBS_OUTPUT_H
#define OBS_OUTPUT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* bytes of one reply; small enough to be received whole (OBP_CONN_BIG) */
#define OBS_OUTPUT_PIECE (16u << 10)
/* bytes kept of each stream until a call fetches them; the rest is lost, and a line says so */
#define OBS_OUTPUT_MAX   (64ull << 20)
/* a file is replaced once so much of it has been sent */
#define OBS_OUTPUT_RENEW (1ull << 20)

/* OBS_OUTPUT_MAX bytes, sealed. All writers share one file position. */
struct obs_output_file {
	int fd;        /* -1: none */
	uint64_t sent; /* bytes already forwarded; below the position */
};

struct obs_output {
	pthread_mutex_t lock;
	struct obs_output_file now[2]; /* stdout, stderr */
	/* the files before: a thread may still be writing to one that was replaced */
	struct obs_output_file old[2];
	bool captured;
};

/* Replaces descriptors 1 and 2. False: output of kernels goes where the server's does. */
bool obs_output_capture(struct obs_output *output);
/*
 * Passes what is new since the last call to `send`, in pieces; flags: OBP_REPLY_TEXT_STDERR or 0.
 */
typedef void obs_output_send(void *user, uint16_t flags, const void *text, uint32_t size);
void obs_output_forward(struct obs_output *output, obs_output_send *send, void *user);

#endif
