/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * For tests of the server: starts the real program, and provides a client that sends exactly the
 * bytes of a test. All errors are reported by CHECK: a helper that returns has succeeded. One
 * thread.
 */
#ifndef PEER_H
#define PEER_H

#include <stdint.h>
#include <sys/types.h>

#include "protocol/conn.h"
#include "protocol/control.h"
#include "protocol/obp_calls.h"
#include "protocol/resume.h"
#include "tests/test.h"

struct server {
	pid_t pid;
	int log;                /* the server's stderr */
	char dir[64], path[96]; /* the first address is unix:path */
	char tcp[64];           /* the second address, as printed */
};

/* options: NULL-terminated, added after --listen. The default driver is the null driver. */
void server_start(struct server *server, const char *const *options);
void server_start_env(
	struct server *server, const char *const *options, const char *name, const char *value);
/* Sends SIGTERM and waits for the end of the process. Returns its exit status. */
int server_stop(struct server *server);
int server_wait(struct server *server, unsigned ms);
/* Waits until the server's log contains these words. The log level is info. */
void server_await_log(const struct server *server, const char *words);
/* Returns the number of workers; ret holds at most `max` of them. */
int server_children(const struct server *server, pid_t *ret, int max);
/* The admission process. */
pid_t server_admission(const struct server *server);
/* Waits until the server has that many workers. */
void server_await_children(const struct server *server, int n);
bool process_alive(pid_t pid);

struct peer {
	int fd;
	struct obp_conn conn;
	struct obp_message got; /* the last control message */
	uint64_t next;          /* number of the next record */
	bool acknowledges;      /* calls acknowledge the replies that were received */
	bool slabs;             /* the hello says that the client uses slabs */
	struct obp_item item;
};

void peer_connect(struct peer *peer, const struct server *server);
void peer_close(struct peer *peer);
void peer_send(struct peer *peer, const void *data, size_t size);
/* Waits until the server has read everything that was sent, or has closed the connection. */
void peer_await_taken(const struct peer *peer);
void peer_preface(struct peer *peer, uint8_t intent, uint64_t route);
void peer_message(struct peer *peer, const struct obp_message *message);
/* Receives the next control message within a minute. False: the connection ended first. */
bool peer_control(struct peer *peer);
/*
 * Waits up to a minute for the server to close the connection; false: it did not. Drops bytes
 * received before.
 */
bool peer_ended(struct peer *peer);
/* Sends the preface and a hello, without waiting for an answer. */
void peer_hello(struct peer *peer, uint32_t seconds);
/* Connects, sends a hello that proposes one range, receives the welcome into peer->got. */
void peer_session(struct peer *peer, const struct server *server);
/* The same with a client that uses slabs. */
void peer_session_slabs(struct peer *peer, const struct server *server);
/* The same with a client that can resume within that many seconds after a connection broke. */
void peer_session_grace(struct peer *peer, const struct server *server, uint32_t seconds);
/*
 * Opens a further connection of the session. got is set to the server's answer (OBP_MSG_JOINED,
 * OBP_MSG_REFUSED). False: the server closed the connection without an answer. The next expected
 * reply on this connection is received + 1.
 */
bool peer_join(struct peer *peer, const struct server *server, uint64_t route,
	const uint8_t *secret, enum obp_join_purpose purpose, uint64_t received, uint64_t attempt);
/* Sends one call in a separate frame. The body is padded with zeros. */
void peer_call(struct peer *peer, uint16_t lane, uint16_t opcode, const void *body, size_t size);
/*
 * Receives the next reply into peer->item, within a minute. Of a large reply only the head is kept.
 */
const struct obp_reply *peer_reply(struct peer *peer);
/* Sends a ping and receives its reply. Returns the deferred error in the reply. */
uint32_t peer_ping(struct peer *peer, uint16_t lane);
/* Sends one call and checks that the session ends with a message of type fatal. */
void peer_call_fatal(struct peer *peer, uint16_t opcode, const void *body, size_t size);
void peer_use_context(struct peer *peer, uint16_t lane, uint64_t context);

#endif
