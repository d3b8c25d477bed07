/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Declarations shared by the TLS sources only. */
#ifndef OBT_TLS_INSIDE_H
#define OBT_TLS_INSIDE_H

#include <openssl/ssl.h>
#include <pthread.h>

#include "transport/tls.h"

struct obt_tls {
	pthread_mutex_t lock; /* around every use of ssl */
	SSL *ssl;
	/* the stream's, set at each use: owners may have duplicated it */
	_Atomic int fd;
	_Atomic bool started; /* application data can be sent */
	/*
	 * server: started, and the client's Finished is still to come (0.5-RTT data, RFC 8446
	 * section 2.3)
	 */
	bool early;
	bool server;
	/* the socket's next bytes belong to another layer: do not read */
	bool held;
	bool has_psk;
	bool second;  /* this is the second layer */
	bool resumed; /* second layer: the first was resumed from a ticket */
	uint8_t psk[OBT_TLS_PSK_BYTES];
	char *peer; /* client: host:port, for tickets and messages */
	bool plain; /* the peer answered the handshake in clear */
	/* client: certificates are compared with pins (transport/pin.h), not verified by authorities */
	bool pinned;
	/*
	 * the last receive left decrypted bytes inside; false after an empty one, since half a
	 * record gives nothing to read
	 */
	bool more;
	unsigned recv_timeout_ms; /* of a blocking receive; 0: none */
	uint8_t pin[OBT_TLS_PIN_BYTES];
	struct ob_cause cause; /* the first failure; code OB_ERR_NONE: none yet */
};

extern const struct obt_ops obt_tls_ops;
/* Receives one refusal in clear from a server that does not speak TLS. */
extern const struct obt_ops obt_refusal_ops;

/*
 * A server's tickets (tls_ticket.c). Part of obt_tls_server; `context` has it as its application
 * data.
 */
struct obt_tls_ticket_keys {
	pthread_mutex_t lock;
	uint64_t made_ns; /* the newest key */
	unsigned count;
	uint8_t keys[OBT_TLS_TICKET_KEYS][OBT_TLS_TICKET_BYTES]; /* newest first */
};

/*
 * Makes a new key every OBT_TLS_TICKET_S; tickets of the key before it are still accepted. False:
 * no random bytes.
 */
bool obt_tls_ticket_init(struct obt_tls_ticket_keys *keys, SSL_CTX *context);
void obt_tls_ticket_fini(struct obt_tls_ticket_keys *keys);
/* Tests: makes the newest key too old. */
void obt_tls_ticket_expire(struct obt_tls_ticket_keys *keys);

/*
 * Makes a context for either side: TLS 1.3 only, no renegotiation, no settings file. `exact` reads
 * no byte beyond the current record, so that another layer can follow on the same socket. NULL: no
 * memory.
 */
SSL_CTX *obt_tls_context(bool server, bool exact);
/* The library's state for this layer on tls's socket. NULL: no memory. */
SSL *obt_tls_state(struct obt_tls *tls, SSL_CTX *context);
/* Begins a new layer on `stream`. OB_ERR_NO_MEMORY. */
enum ob_err obt_tls_attach(struct obt_stream *stream, SSL_CTX *context, bool server);
/* Client, under the lock: completes the handshake of tls->ssl. The reason is in tls->cause. */
enum ob_err obt_tls_handshake(struct obt_stream *stream, uint64_t deadline);
/* True if the next bytes in the socket are a frame, not TLS. */
bool obt_tls_plain_bytes(int fd);
/*
 * Records the library's last failure, after "what: ", and empties its queue of errors. Returns
 * `code`.
 */
enum ob_err obt_tls_explain(struct ob_cause *ret_cause, enum ob_err code, const char *what);

#endif
