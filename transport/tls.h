/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * TLS 1.3 as a kind of stream. The connection's first 16 bytes, the preface, are in clear;
 * everything after them is TLS.
 *
 *   client   obt_stream_connect on a tls:// address gives a stream whose first obt_message_send
 *            sends the preface in clear and then begins TLS (obt_tls_start).
 *   server   obt_tls_accept on a socket whose preface has been read; the handshake happens inside
 *            the first receives.
 *
 * The first message ends that layer. A second one, with a key derived from the first, carries the
 * session (obt_tls_hand_on).
 *
 * Sending and receiving may be two threads, as with every stream: a lock is held inside the library
 * only, never while waiting for the socket. Bytes may be available although the socket has none:
 * call obt_stream_pending before polling. Certificates, keys and tokens are read from files and the
 * environment once and never logged.
 */
#ifndef OBT_TLS_H
#define OBT_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "transport/stream.h"

#define OBT_TLS_NAME_MAX     256u /* bytes of a certificate's name as text, NUL included */
#define OBT_TLS_TICKET_KEYS  2u
#define OBT_TLS_TICKET_BYTES 80u /* 16 bytes of name, a key for AES-256, one for HMAC-SHA-256 */
/*
 * lifetime of a ticket, and how long a key makes tickets: a key is kept as long as its tickets are
 * valid
 */
#define OBT_TLS_TICKET_S     3600u
#define OBT_TLS_PSK_BYTES    48u /* size of a pre-shared key: SHA-384's */
#define OBT_TLS_PIN_BYTES    32u /* SHA-256 of a certificate's DER bytes */

/* ---- client ---- */

/*
 * Makes *stream, a connected socket, a client's TLS stream that has not begun. The environment says
 * which servers to trust: OUTBOARD_TLS_PIN (transport/pin.h) where it has a pin for the address,
 * else OUTBOARD_TLS_CA (a file of certificates), else the system's authorities; with
 * the last two the certificate must be for url's host. OUTBOARD_TLS_CERT and OUTBOARD_TLS_KEY: the
 * client's own certificate. OB_ERR_TLS: *ret_cause; the stream stays a plain socket.
 */
enum ob_err obt_tls_client(
	struct obt_stream *stream, const struct obt_url *url, struct ob_cause *ret_cause);
/*
 * Reads what OUTBOARD_TLS_CA, _PIN, _CERT and _KEY name, which the first connection does otherwise:
 * for a process that gives up the right to read the files. OB_ERR_TLS, _NO_MEMORY: *ret_cause.
 */
enum ob_err obt_tls_client_load(struct ob_cause *ret_cause);
/*
 * Adds pins to those of OUTBOARD_TLS_PIN for connections from now on; an address that has a pin of
 * its own keeps it. OB_ERR_ARGUMENT, _LIMIT, _TLS, _NO_MEMORY: *ret_cause.
 */
enum ob_err obt_tls_pins_add(const char *pins, struct ob_cause *ret_cause);
/*
 * Sends `before` in clear, then makes the handshake, before the deadline. OB_ERR_TLS,
 * OB_ERR_CERTIFICATE, _TIMEOUT, _CLOSED. OB_ERR_CLOSED also when the server answers in clear: then
 * one refusal can be received, and nothing else.
 */
enum ob_err obt_tls_start(
	struct obt_stream *stream, const void *before, size_t size, uint64_t deadline);
bool obt_tls_started(const struct obt_stream *stream);
/* True if the handshake resumed a TLS session of an earlier connection of this process. */
bool obt_tls_resumed(const struct obt_stream *stream);

/* ---- server ---- */

struct obt_tls_server;

/* client_ca may be NULL: clients show no certificate. NULL: *ret_cause. */
struct obt_tls_server *obt_tls_server_new(
	const char *cert, const char *key, const char *client_ca, struct ob_cause *ret_cause);
void obt_tls_server_free(struct obt_tls_server *server);
/* Tests: makes the newest ticket key too old for new tickets. */
void obt_tls_server_expire(struct obt_tls_server *server);

/* Takes over the socket. OB_ERR_NO_MEMORY. */
enum ob_err obt_tls_accept(struct obt_tls_server *server, int fd, struct obt_stream *ret);
/*
 * After the handshake: the name in the client's certificate, which one of client_ca's has signed.
 * OB_ERR_NOT_FOUND: it showed none. OB_ERR_CERTIFICATE: *ret_cause says what is wrong with it.
 */
enum ob_err obt_tls_client_name(
	const struct obt_stream *stream, char *ret_name, size_t size, struct ob_cause *ret_cause);

/* ---- two layers on one socket (docs/adr/0008-admission.md) ---- */

/*
 * The first layer authenticates the two sides: by the server's certificate for a new session, by
 * the session's secret for a join. It carries one message. After its end the session's own layer
 * begins on the same socket, a handshake with a key that only the two ends of the first layer have,
 * so that the process that serves the session needs neither certificate nor ticket keys.
 */

/*
 * Derives a key that only the two ends of this finished handshake can compute (RFC 8446 section
 * 7.5).
 */
bool obt_tls_export(const struct obt_stream *stream, const void *context, size_t size,
	uint8_t ret[OBT_TLS_PSK_BYTES]);
/* Derives the key of a join's first layer from the session's secret. */
bool obt_tls_join_key(const void *secret, size_t size, uint8_t ret[OBT_TLS_PSK_BYTES]);

/*
 * Client, before anything was sent: the first layer will use the session's secret. A stream without
 * TLS is unchanged. OB_ERR_NO_MEMORY.
 */
enum ob_err obt_tls_use_secret(struct obt_stream *stream, const void *secret, size_t size);
/*
 * Client, after the message was sent: ends the first layer and begins the second in the same
 * flight; waits until its handshake is finished, or a refusal can be received. context: as for the
 * server's obt_tls_export. OB_ERR_TLS, _TIMEOUT, _CLOSED as obt_tls_start.
 */
enum ob_err obt_tls_hand_on(
	struct obt_stream *stream, const void *context, size_t size, uint64_t deadline);

/* Server: the first layer of a join. Takes over the socket. OB_ERR_NO_MEMORY. */
enum ob_err obt_tls_accept_join(
	int fd, const uint8_t psk[OBT_TLS_PSK_BYTES], struct obt_stream *ret);
/* Server: true if the client has ended its layer and no byte after its end was read. */
bool obt_tls_ended(const struct obt_stream *stream);
/* Server: ends this side's layer. False: the socket does not take it now. */
bool obt_tls_farewell(struct obt_stream *stream);
/*
 * Server: makes a handshake of the second layer with itself, so that the library has loaded
 * everything it needs before the first client.
 */
void obt_tls_warm(void);
/* Server: the second layer. Takes over the socket. OB_ERR_NO_MEMORY. */
enum ob_err obt_tls_accept_data(
	int fd, const uint8_t psk[OBT_TLS_PSK_BYTES], struct obt_stream *ret);
/*
 * Server, second layer: receives the client's first message and answers it; never blocks.
 * *ret_ready: bytes may be sent from now on, since the client has shown that it has the key; false:
 * more has to come. OB_ERR_TLS: obt_stream_cause.
 */
enum ob_err obt_tls_answer(struct obt_stream *stream, bool *ret_ready);

/* ---- certificates ---- */

/*
 * Makes a key (P-256) and a self-signed certificate for `names` (comma-separated host names and
 * addresses), valid for `days` from now, as PEM files; only the owner can read the key. Neither
 * file may exist. ret_pin: for OUTBOARD_TLS_PIN. OB_ERR_ARGUMENT, _IO: *ret_cause.
 */
enum ob_err obt_tls_make_certificate(const char *cert, const char *key, const char *names,
	unsigned days, uint8_t ret_pin[OBT_TLS_PIN_BYTES], struct ob_cause *ret_cause);
/* The pin of a file's first certificate. OB_ERR_CERTIFICATE: the file has none that can be read. */
enum ob_err obt_tls_read_pin(const char *cert, uint8_t ret_pin[OBT_TLS_PIN_BYTES]);

#endif
