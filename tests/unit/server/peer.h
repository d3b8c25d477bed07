/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * For tests of the server: starts the real program, and a client that sends exactly the bytes a
 * test wants. Everything is checked with CHECK, so a helper that returns has worked. One thread.
 */
#ifndef PEER_H
#define PEER_H

#include <stdint.h>
#include <sys/types.h>

#include "protocol/conn.h"
#include "protocol/control.h"
#include "protocol/obp_calls.h"
#include "protocol/resume.h"
#include "tests/unit/test.h"

struct server {
	pid_t pid;
	int log;                /* what it writes to stderr */
	char dir[64], path[96]; /* unix:path is one address */
	char tcp[64];           /* the other, as printed */
};

/* options: NULL-terminated, after --listen; the driver is null unless given. */
void server_start(struct server *server, const char *const *options);
void server_start_env(
	struct server *server, const char *const *options, const char *name, const char *value);
/* Sends SIGTERM, waits until it is gone; its exit status. */
int server_stop(struct server *server);
int server_wait(struct server *server, unsigned ms);
/* Until its log holds these words; the level is info. */
void server_await_log(const struct server *server, const char *words);
/* Its workers; how many, at most `max` in ret. */
int server_children(const struct server *server, pid_t *ret, int max);
/* The process that admits connections. */
pid_t server_admission(const struct server *server);
/* Until the server has that many workers. */
void server_await_children(const struct server *server, int n);
bool process_alive(pid_t pid);

struct peer {
	int fd;
	struct obp_conn conn;
	struct obp_message got; /* the last control message */
	uint64_t next;          /* number of the next record */
	struct obp_item item;
};

void peer_connect(struct peer *peer, const struct server *server);
void peer_close(struct peer *peer);
void peer_send(struct peer *peer, const void *data, size_t size);
/* Until the server has read all that was sent (or has hung up). */
void peer_await_taken(const struct peer *peer);
void peer_preface(struct peer *peer, uint8_t intent, uint64_t route);
void peer_message(struct peer *peer, const struct obp_message *message);
/* The next control message within a minute; false: the connection ended first. */
bool peer_control(struct peer *peer);
/*
 * Until the server has closed, within a minute; false when it did not. Bytes that come before are
 * dropped.
 */
bool peer_ended(struct peer *peer);
/* The preface and a hello, without waiting for an answer. */
void peer_hello(struct peer *peer, uint32_t seconds);
/* Connects, says hello proposing one range, takes the welcome (in peer->got). */
void peer_session(struct peer *peer, const struct server *server);
/* The same with a client that can go on after a broken connection for so many seconds. */
void peer_session_grace(struct peer *peer, const struct server *server, uint32_t seconds);
/*
 * Another connection of the session. got becomes the server's answer (OBP_MSG_JOINED,
 * OBP_MSG_REFUSED); false: it hung up without one. The connection's expected reply becomes received
 * + 1.
 */
bool peer_join(struct peer *peer, const struct server *server, uint64_t route,
	const uint8_t *secret, enum obp_join_purpose purpose, uint64_t received, uint64_t attempt);
/* One call in a frame of its own; size of the body is padded with zeros. */
void peer_call(struct peer *peer, uint16_t lane, uint16_t opcode, const void *body, size_t size);
/* The next reply within a minute in peer->item (a large one is dropped but for its head). */
const struct obp_reply *peer_reply(struct peer *peer);
/* ping and its reply; the deferred error that comes with it. */
uint32_t peer_ping(struct peer *peer, uint16_t lane);
/* Sends one call and expects the session to end with a message of type fatal. */
void peer_call_fatal(struct peer *peer, uint16_t opcode, const void *body, size_t size);
void peer_use_context(struct peer *peer, uint16_t lane, uint64_t context);

#endif
