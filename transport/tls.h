/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * TLS 1.3 behind the stream's table of functions. The connection's first 16 bytes, the preface, are
 * in clear; everything after them is TLS.
 *
 *   client   obt_stream_connect on a tls:// address gives a stream whose first obt_message_send
 *            sends the preface as it is and then
 *            greets the server (obt_tls_start).
 *   server   obt_tls_accept on a socket whose preface has been read; the handshake happens inside
 *            the first receives.
 *
 * The first message ends that layer: a second one, with a key from the first, carries the session
 * (obt_tls_hand_on).
 *
 * Sending and receiving may be two threads, as with every stream: a lock is held inside the library
 * only, never while waiting for the socket. Bytes may be there although the socket has none: who
 * polls looks at obt_stream_pending first. Certificates, keys and tokens are read from files and
 * the environment once; nothing of them is logged.
 */
#ifndef OBT_TLS_H
#define OBT_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "transport/stream.h"

#define OBT_TLS_NAME_MAX     256u /* bytes of a certificate's name as text, NUL included */
#define OBT_TLS_WHY_MAX      256u
#define OBT_TLS_TICKET_KEYS  2u
#define OBT_TLS_TICKET_BYTES 80u /* a name of 16 bytes, a key for AES-256, one for HMAC-SHA-256 */
/*
 * how long a ticket is good, and a key the newest: a ticket's key is there as long as the ticket is
 * good
 */
#define OBT_TLS_TICKET_S     3600u
#define OBT_TLS_PSK_BYTES    48u /* of a key for a handshake without certificates: SHA-384's */
#define OBT_TLS_PIN_BYTES    32u /* SHA-256 of a certificate's DER bytes */

/* ---- client ---- */

/*
 * Makes *stream, a connected socket, a client's TLS stream that has not begun. Whom it trusts, from
 * the environment: OUTBOARD_TLS_PIN (the server's certificate has this SHA-256 in hexadecimal),
 * else OUTBOARD_TLS_CA (a file of certificates), else the system's; with the last two the
 * certificate must be for url's host. OUTBOARD_TLS_CERT and OUTBOARD_TLS_KEY: what the client
 * itself shows. OB_ERR_TLS, the reason in obt_stream_why.
 */
enum ob_err obt_tls_client(struct obt_stream *stream, const struct obt_url *url);
/*
 * `before` in clear, then the handshake, before the deadline. OB_ERR_TLS, OB_ERR_CERTIFICATE, _TIMEOUT, _CLOSED. OB_ERR_CLOSED
 * also when the server answers in clear: one refusal, and nothing else, may then be received.
 */
enum ob_err obt_tls_start(
	struct obt_stream *stream, const void *before, size_t size, uint64_t deadline);
bool obt_tls_started(const struct obt_stream *stream);
/* The handshake was shortened by a session from an earlier connection of this process. */
bool obt_tls_resumed(const struct obt_stream *stream);

/* ---- server ---- */

struct obt_tls_server;

/* client_ca may be NULL: clients show no certificate. NULL: *ret_why. */
struct obt_tls_server *obt_tls_server_new(
	const char *cert, const char *key, const char *client_ca, char *ret_why, size_t why_size);
void obt_tls_server_free(struct obt_tls_server *server);
/* Tests: as if the newest key of tickets were too old to make another with. */
void obt_tls_server_expire(struct obt_tls_server *server);

/* Takes over the socket. OB_ERR_NO_MEMORY. */
enum ob_err obt_tls_accept(struct obt_tls_server *server, int fd, struct obt_stream *ret);
/*
 * After the handshake. True: the client showed a certificate that client_ca's have signed; its name
 * is in ret_name. Else *ret_why is what was wrong with it, NULL when it showed none.
 */
bool obt_tls_client_name(
	const struct obt_stream *stream, char *ret_name, size_t size, const char **ret_why);

/* ---- two layers on one socket (docs/adr/0008-admission.md) ---- */

/*
 * The first layer proves who the two sides are: by the server's certificate for a new session, by
 * the session's secret for a join. It carries one message. Its end is followed on the same socket
 * by the session's own layer, a handshake with a key that only the two ends of the first layer
 * have, so the process that serves the session needs neither certificate nor ticket keys.
 */

/*
 * A key that both ends of a finished handshake compute alike and nobody else (RFC 8446 section
 * 7.5).
 */
bool obt_tls_export(const struct obt_stream *stream, const void *context, size_t size,
	uint8_t ret[OBT_TLS_PSK_BYTES]);
/* The key of a join's first layer, from the session's secret. */
bool obt_tls_join_key(const void *secret, size_t size, uint8_t ret[OBT_TLS_PSK_BYTES]);

/*
 * Client, before anything was sent: the first layer will be by the session's secret. A stream
 * without TLS stays as it is. OB_ERR_NO_MEMORY.
 */
enum ob_err obt_tls_use_secret(struct obt_stream *stream, const void *secret, size_t size);
/*
 * Client, once the message has been sent: ends the first layer and goes on with the second, in the
 * same flight; waits until that is finished, or until a refusal can be received. context: as the
 * server's obt_tls_export. OB_ERR_TLS, _TIMEOUT, _CLOSED as obt_tls_start.
 */
enum ob_err obt_tls_hand_on(
	struct obt_stream *stream, const void *context, size_t size, uint64_t deadline);

/* Server, takes over the socket: the first layer of a join. OB_ERR_NO_MEMORY. */
enum ob_err obt_tls_accept_join(
	int fd, const uint8_t psk[OBT_TLS_PSK_BYTES], struct obt_stream *ret);
/* Server: the client has ended its layer, and not a byte behind it was read. */
bool obt_tls_ended(const struct obt_stream *stream);
/* Server: ends this side's layer. False: the socket does not take it. */
bool obt_tls_farewell(struct obt_stream *stream);
/*
 * Server: makes a handshake of the second layer with itself, so that the library has loaded by the
 * first client what it loads when it is first needed.
 */
void obt_tls_warm(void);
/* Server, takes over the socket: the second layer. OB_ERR_NO_MEMORY. */
enum ob_err obt_tls_accept_data(
	int fd, const uint8_t psk[OBT_TLS_PSK_BYTES], struct obt_stream *ret);
/*
 * Server, second layer: takes the client's first message and answers it; never blocks. 1: bytes may
 * be sent from now on, before the client's next message, as it has shown that it has the key. 0:
 * more has to come. -1: why in obt_stream_why.
 */
int obt_tls_answer(struct obt_stream *stream);

/* ---- certificates ---- */

/*
 * A key (P-256) and a certificate signed by itself, for `names` (comma-separated host names and
 * addresses), valid from now for `days`, as PEM files; the key is readable by its owner only.
 * Neither file may exist. ret_pin: for OUTBOARD_TLS_PIN. False: *ret_why.
 */
bool obt_tls_make_certificate(const char *cert, const char *key, const char *names, unsigned days,
	uint8_t ret_pin[OBT_TLS_PIN_BYTES], char *ret_why, size_t why_size);
/* The pin of a file's first certificate. */
bool obt_tls_read_pin(const char *cert, uint8_t ret_pin[OBT_TLS_PIN_BYTES]);

#endif
