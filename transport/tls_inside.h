/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* What the TLS sources share. Not for others. */
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
	_Atomic bool started; /* bytes of the application can be sent */
	/*
	 * server: started, and the client's Finished is still to come (0.5-RTT data, RFC 8446
	 * section 2.3)
	 */
	bool early;
	bool server;
	/* the socket's next bytes belong to another layer: nothing is read */
	bool held;
	bool has_psk;
	bool second;  /* the layer behind the first */
	bool resumed; /* second: a ticket had shortened the first */
	uint8_t psk[OBT_TLS_PSK_BYTES];
	char *peer; /* client: host:port, for tickets and messages */
	bool plain; /* the other side answers the handshake in clear */
	/*
	 * the last receive left bytes inside; not when it came away empty: half a record is no
	 * reason to come back
	 */
	bool more;
	unsigned recv_timeout_ms; /* of a blocking receive; 0: none */
	uint8_t pin[OBT_TLS_PIN_BYTES];
	char why[OBT_TLS_WHY_MAX];
};

extern const struct obt_ops obt_tls_ops;
/* One refusal in clear from a server that does not speak TLS. */
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

/* A new key each OBT_TLS_TICKET_S; the one before it is still taken. False: no random bytes. */
bool obt_tls_ticket_init(struct obt_tls_ticket_keys *keys, SSL_CTX *context);
void obt_tls_ticket_fini(struct obt_tls_ticket_keys *keys);
/* Tests: as if the newest key's time were over. */
void obt_tls_ticket_expire(struct obt_tls_ticket_keys *keys);

/*
 * A context for either side: TLS 1.3 only, no renegotiation, no settings file. `exact` reads no
 * byte beyond the record it needs, so that another layer can follow on the same socket. NULL: no
 * memory.
 */
SSL_CTX *obt_tls_context(bool server, bool exact);
/* The library's state for this layer on tls's socket. NULL: no memory. */
SSL *obt_tls_state(struct obt_tls *tls, SSL_CTX *context);
/* A fresh layer on `stream`. OB_ERR_NO_MEMORY. */
enum ob_err obt_tls_attach(struct obt_stream *stream, SSL_CTX *context, bool server);
/* Client, under the lock: the handshake of tls->ssl, to its end. */
enum ob_err obt_tls_handshake(struct obt_stream *stream, uint64_t deadline);
/* The next bytes in the socket are a frame's, not TLS. */
bool obt_tls_plain_bytes(int fd);
/*
 * Why the library's last operation failed, in words, into why; the queue of errors is empty then.
 */
void obt_tls_explain(char *ret_why, size_t size, const char *what);

#endif
