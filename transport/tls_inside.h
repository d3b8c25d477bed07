/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* What the TLS sources share. Not for others. */
#ifndef OBT_TLS_INSIDE_H
#define OBT_TLS_INSIDE_H

#include <openssl/ssl.h>
#include <pthread.h>

#include "transport/tls.h"

struct obt_tls {
	pthread_mutex_t lock;          /* around every use of ssl */
	SSL *ssl;
	_Atomic int fd;                /* the stream's, set at each use: owners may have duplicated it */
	_Atomic bool started;
	bool server;
	bool plain;                    /* the other side answers the handshake in clear */
	bool more;                     /* the last receive left bytes inside; not when it came away empty: half a record is no reason to come back */
	unsigned recv_timeout_ms;      /* of a blocking receive; 0: none */
	uint8_t pin[OBT_TLS_PIN_BYTES];
	char why[OBT_TLS_WHY_MAX];
};

extern const struct obt_ops obt_tls_ops;
/* One refusal in clear from a server that does not speak TLS. */
extern const struct obt_ops obt_refusal_ops;

/* A server's tickets (tls_ticket.c). Part of obt_tls_server; `context` has it as its application data. */
struct obt_tls_ticket_keys {
	pthread_mutex_t lock;
	struct obt_tls_tickets shared;
	uint8_t own[OBT_TLS_TICKET_BYTES]; /* this process's, for clients that showed a certificate */
};

/* False: no random bytes. */
bool obt_tls_ticket_init(struct obt_tls_ticket_keys *keys, SSL_CTX *context);
void obt_tls_ticket_fini(struct obt_tls_ticket_keys *keys);

/* A context for either side: TLS 1.3 only, no renegotiation, no settings file. NULL: no memory. */
SSL_CTX *obt_tls_context(bool server);
/* A fresh state on `stream`. OB_ERR_NO_MEMORY. */
enum ob_err obt_tls_attach(struct obt_stream *stream, SSL_CTX *context, bool server);
/* The next bytes in the socket are a frame's, not TLS. */
bool obt_tls_plain_bytes(int fd);
/* Why the library's last operation failed, in words, into why; the queue of errors is empty then. */
void obt_tls_explain(char *ret_why, size_t size, const char *what);

#endif
