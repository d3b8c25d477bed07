/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The state of the invented pool (dashboard_pool.c), and its documents. One of each; the loop's
 * thread.
 */
#ifndef TESTS_E2E_DASHBOARD_POOL_H
#define TESTS_E2E_DASHBOARD_POOL_H

#include <uv.h>

#include "loadbalancer/dashboard/source.h"

#define GPUS_MAX    16u
#define SERVERS_MAX 1024u
#define EVENTS_MAX  64u
#define HELD_MAX    16u
#define SESSIONS    5u
#define GIB         (1ull << 30)

struct node {
	char name[32];
	enum obl_seen_state state;
	uint64_t beat_ns;
	bool hot, faulty, mute;
};

struct event {
	uint64_t time_ms;
	char kind[24], subject[64], text[200];
};

struct session {
	const char *tenant, *program, *user, *host;
	uint32_t server, gpus;
	uint64_t gib;
	bool restartable;
	uint32_t moves;
	bool killed, moving;
	uint32_t to; /* moving: the server that it goes to */
};

struct pool {
	struct node nodes[SERVERS_MAX];
	uint32_t n, gpus;
	uint64_t began; /* ms since 1970 */
	uint64_t events;
	struct event event[EVENTS_MAX];
	struct session sessions[SESSIONS];
	bool usable, hold, limited;
	char revoked[16], program[128]; /* a token that is not valid any more; a name */
	struct {
		obl_web_done *done;
		void *user;
	} held[HELD_MAX]; /* commands that end after the HTTP server */
	unsigned n_held;
	struct obl_counts counts;
	struct obl_web *web;
	uv_loop_t loop;
	uv_pipe_t in;
	uv_signal_t term;
	char line[256];
	size_t line_size;
};

extern struct pool pool;

uint64_t now_ms(void);
/* The GPU of a server as it is now. */
struct obl_seen_gpu gpu_make(uint32_t node, uint32_t index);
void session_id_print(uint32_t session, char ret[33]);
/* As the member of struct obl_source. */
bool document_make(void *user, const struct obl_caller *caller, const char *what, uint64_t since,
	char **ret_text, size_t *ret_size);

#endif
