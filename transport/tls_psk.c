/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <errno.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "transport/tls_inside.h"

#define SUITE      "TLS_AES_256_GCM_SHA384" /* only one: a pre-shared key is tied to a hash */
#define LABEL      "EXPORTER-outboard-session"
#define JOIN_LABEL "outboard join key"

static const uint8_t suite_id[2] = { 0x13, 0x02 };
static const unsigned char identity[] = "outboard";

enum side { CLIENT_JOIN, CLIENT_DATA, SERVER_JOIN, SERVER_DATA, SIDES };

static SSL_CTX *contexts[SIDES];
static pthread_mutex_t contexts_lock = PTHREAD_MUTEX_INITIALIZER;

static SSL_SESSION *session_make(SSL *ssl)
{
	const struct obt_tls *tls = SSL_get_app_data(ssl);
	SSL_SESSION *session = tls && tls->has_psk ? SSL_SESSION_new() : NULL;

	if (session && SSL_SESSION_set1_master_key(session, tls->psk, sizeof tls->psk) == 1 &&
		SSL_SESSION_set_cipher(session, SSL_CIPHER_find(ssl, suite_id)) == 1 &&
		SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1)
		return session;
	SSL_SESSION_free(session);
	return NULL;
}

static int session_offer(SSL *ssl, const EVP_MD *digest, const unsigned char **ret_id,
	size_t *ret_size, SSL_SESSION **ret)
{
	(void)digest;
	*ret = session_make(ssl);
	*ret_id = identity;
	*ret_size = sizeof identity - 1;
	return *ret != NULL;
}

static int session_find(SSL *ssl, const unsigned char *id, size_t size, SSL_SESSION **ret)
{
	*ret = size == sizeof identity - 1 && memcmp(id, identity, size) == 0 ? session_make(ssl)
									      : NULL;
	return 1;
}

/* Refuses every certificate. */
static int certificate_refuse(X509_STORE_CTX *store, void *unused)
{
	(void)unused;
	X509_STORE_CTX_set_error(store, X509_V_ERR_APPLICATION_VERIFICATION);
	return 0;
}

static SSL_CTX *context_make(bool server, bool exact)
{
	SSL_CTX *context = obt_tls_context(server, exact);

	if (!context || SSL_CTX_set_ciphersuites(context, SUITE) != 1) {
		SSL_CTX_free(context);
		return NULL;
	}
	SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_num_tickets(context, 0);
	if (server) {
		SSL_CTX_set_psk_find_session_callback(context, session_find);
	} else {
		SSL_CTX_set_psk_use_session_callback(context, session_offer);
		SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
		SSL_CTX_set_cert_verify_callback(context, certificate_refuse, NULL);
	}
	return context;
}

/* Created at first use, which takes a fraction of a millisecond. NULL: no memory. */
static SSL_CTX *context_of(enum side side)
{
	SSL_CTX *context;

	pthread_mutex_lock(&contexts_lock);
	if (!contexts[side])
		contexts[side] = context_make(
			side >= SERVER_JOIN, side == CLIENT_JOIN || side == SERVER_JOIN);
	context = contexts[side];
	pthread_mutex_unlock(&contexts_lock);
	return context;
}

static void psk_set(struct obt_tls *tls, const uint8_t psk[OBT_TLS_PSK_BYTES])
{
	memcpy(tls->psk, psk, sizeof tls->psk);
	tls->has_psk = true;
}

/* ---- keys ---- */

bool obt_tls_export(const struct obt_stream *stream, const void *context, size_t size,
	uint8_t ret[OBT_TLS_PSK_BYTES])
{
	return stream->tls &&
		SSL_export_keying_material(stream->tls->ssl, ret, OBT_TLS_PSK_BYTES, LABEL,
			sizeof LABEL - 1, context, size, 1) == 1;
}

bool obt_tls_join_key(const void *secret, size_t size, uint8_t ret[OBT_TLS_PSK_BYTES])
{
	EVP_MD_CTX *digest = EVP_MD_CTX_new();
	unsigned n = 0;
	bool ok = digest && EVP_DigestInit_ex(digest, EVP_sha384(), NULL) == 1 &&
		EVP_DigestUpdate(digest, JOIN_LABEL, sizeof JOIN_LABEL) == 1 &&
		EVP_DigestUpdate(digest, secret, size) == 1 &&
		EVP_DigestFinal_ex(digest, ret, &n) == 1 && n == OBT_TLS_PSK_BYTES;

	EVP_MD_CTX_free(digest);
	return ok;
}

/* ---- client ---- */

/* Replaces the current layer by another. */
static bool state_replace(
	struct obt_tls *tls, enum side side, const uint8_t psk[OBT_TLS_PSK_BYTES], SSL **ret_old)
{
	SSL_CTX *context = context_of(side);
	SSL *ssl = context ? obt_tls_state(tls, context) : NULL;

	if (!ssl)
		return false;
	*ret_old = tls->ssl;
	tls->ssl = ssl;
	tls->started = false;
	tls->early = false;
	psk_set(tls, psk);
	return true;
}

enum ob_err obt_tls_use_secret(struct obt_stream *stream, const void *secret, size_t size)
{
	uint8_t psk[OBT_TLS_PSK_BYTES];
	SSL *old = NULL;
	bool ok;

	if (!stream->tls)
		return OB_ERR_NONE;
	ok = obt_tls_join_key(secret, size, psk) &&
		state_replace(stream->tls, CLIENT_JOIN, psk, &old);
	SSL_free(old);
	OPENSSL_cleanse(psk, sizeof psk);
	return ok ? OB_ERR_NONE : OB_ERR_NO_MEMORY;
}

static enum ob_err await(struct obt_stream *stream, short events, uint64_t deadline)
{
	struct pollfd pfd = { .fd = stream->fd, .events = events };
	int n;

	do
		n = poll(&pfd, 1, ob_clock_poll_ms(deadline));
	while (n < 0 && errno == EINTR);
	return n > 0 ? OB_ERR_NONE : n == 0 ? OB_ERR_TIMEOUT : OB_ERR_IO;
}

/* Sends close_notify of `first` and, after it, the second layer's ClientHello. Reads nothing. */
static enum ob_err both_send(struct obt_stream *stream, SSL *first, uint64_t deadline)
{
	struct obt_tls *tls = stream->tls;
	enum ob_err err = OB_ERR_NONE;
	int n;

	while ((n = SSL_shutdown(first)) < 0 && SSL_get_error(first, n) == SSL_ERROR_WANT_WRITE &&
		!err)
		err = await(stream, POLLOUT, deadline);
	if (n < 0)
		return err ? err : OB_ERR_CLOSED;
	tls->held = true;
	while ((n = SSL_connect(tls->ssl)) < 0 &&
		SSL_get_error(tls->ssl, n) == SSL_ERROR_WANT_WRITE && !err)
		err = await(stream, POLLOUT, deadline);
	tls->held = false;
	return err                                                  ? err
		: SSL_get_error(tls->ssl, n) == SSL_ERROR_WANT_READ ? OB_ERR_NONE
								    : OB_ERR_CLOSED;
}

/*
 * Reads the rest of the first layer: tickets, then close_notify; or a refusal, which is left to be
 * read (*ret_answered). OB_ERR_CLOSED also when the server continues in clear, as obt_tls_start.
 */
static enum ob_err first_end(
	struct obt_stream *stream, SSL *first, uint64_t deadline, bool *ret_answered)
{
	struct obt_tls *tls = stream->tls;
	enum ob_err err = OB_ERR_NONE;
	char byte;
	int n;

	*ret_answered = false;
	while (!err) {
		errno = 0;
		n = SSL_peek(first, &byte, 1);
		if (n > 0) {
			*ret_answered = true;
			return OB_ERR_NONE;
		}
		n = SSL_get_error(first, n);
		if (n == SSL_ERROR_ZERO_RETURN)
			return OB_ERR_NONE;
		if (n != SSL_ERROR_WANT_READ || tls->plain) {
			if (tls->plain)
				stream->ops = &obt_refusal_ops;
			ERR_clear_error();
			return OB_ERR_CLOSED;
		}
		err = await(stream, POLLIN, deadline);
	}
	return err;
}

/* Under the lock. */
static enum ob_err second_begin(
	struct obt_stream *stream, const uint8_t psk[OBT_TLS_PSK_BYTES], uint64_t deadline)
{
	struct obt_tls *tls = stream->tls;
	bool answered = false;
	SSL *first = NULL;
	enum ob_err err;

	if (!state_replace(tls, CLIENT_DATA, psk, &first))
		return OB_ERR_NO_MEMORY;
	err = both_send(stream, first, deadline);
	if (!err)
		err = first_end(stream, first, deadline, &answered);
	if (answered) {
		SSL_free(tls->ssl);
		tls->ssl = first;
		tls->started = true;
		return OB_ERR_NONE;
	}
	SSL_free(first);
	if (!err)
		err = obt_tls_handshake(stream, deadline);
	if (!err && SSL_session_reused(tls->ssl) != 1)
		err = OB_ERR_TLS;
	tls->started = !err;
	return err;
}

enum ob_err obt_tls_hand_on(
	struct obt_stream *stream, const void *context, size_t size, uint64_t deadline)
{
	struct obt_tls *tls = stream->tls;
	uint8_t psk[OBT_TLS_PSK_BYTES];
	bool resumed = SSL_session_reused(tls->ssl) == 1;
	enum ob_err err;

	if (!obt_tls_export(stream, context, size, psk))
		return OB_ERR_TLS;
	tls->fd = stream->fd;
	pthread_mutex_lock(&tls->lock);
	tls->second = true;
	tls->resumed = resumed;
	err = second_begin(stream, psk, deadline);
	pthread_mutex_unlock(&tls->lock);
	OPENSSL_cleanse(psk, sizeof psk);
	OPENSSL_cleanse(tls->psk, sizeof tls->psk);
	tls->has_psk = false;
	return err;
}

/* ---- server ---- */

void obt_tls_warm(void)
{
	struct obt_tls sides[2] = { { .has_psk = true }, { .has_psk = true, .server = true } };
	SSL_CTX *context[2] = { context_of(CLIENT_DATA), context_of(SERVER_DATA) };
	BIO *bio[2] = { NULL, NULL };

	for (int i = 0; i < 2; i++)
		sides[i].ssl = context[i] ? obt_tls_state(&sides[i], context[i]) : NULL;
	if (sides[0].ssl && sides[1].ssl && BIO_new_bio_pair(&bio[0], 0, &bio[1], 0) == 1) {
		for (int i = 0; i < 2; i++)
			SSL_set_bio(sides[i].ssl, bio[i], bio[i]);
		for (int i = 0; i < 6; i++)
			SSL_do_handshake(sides[i % 2].ssl);
	}
	SSL_free(sides[0].ssl);
	SSL_free(sides[1].ssl);
	ERR_clear_error();
}

static enum ob_err accept_with(
	enum side side, int fd, const uint8_t psk[OBT_TLS_PSK_BYTES], struct obt_stream *ret)
{
	SSL_CTX *context = context_of(side);
	enum ob_err err;

	obt_stream_adopt(ret, fd);
	err = context ? obt_tls_attach(ret, context, true) : OB_ERR_NO_MEMORY;
	if (!err)
		psk_set(ret->tls, psk);
	return err;
}

enum ob_err obt_tls_accept_join(
	int fd, const uint8_t psk[OBT_TLS_PSK_BYTES], struct obt_stream *ret)
{
	return accept_with(SERVER_JOIN, fd, psk, ret);
}

enum ob_err obt_tls_accept_data(
	int fd, const uint8_t psk[OBT_TLS_PSK_BYTES], struct obt_stream *ret)
{
	return accept_with(SERVER_DATA, fd, psk, ret);
}

enum ob_err obt_tls_answer(struct obt_stream *stream, bool *ret_ready)
{
	struct obt_tls *tls = stream->tls;
	enum ob_err err = OB_ERR_NONE;
	bool ready = false;
	size_t none = 0;
	char byte;
	int result, error;

	tls->fd = stream->fd;
	pthread_mutex_lock(&tls->lock);
	errno = 0;
	result = SSL_read_early_data(tls->ssl, &byte, 0, &none);
	if (result == SSL_READ_EARLY_DATA_FINISH && SSL_session_reused(tls->ssl) == 1) {
		tls->early = true;
		tls->started = true;
		OPENSSL_cleanse(tls->psk, sizeof tls->psk);
		tls->has_psk = false;
		ready = true;
		/* bytes in clear stay in the socket, and waiting for TLS would never end */
	} else if (tls->plain) {
		err = ob_cause_set(&tls->cause, OB_ERR_TLS,
			"the client continues in clear instead of beginning the session's TLS "
			"layer");
	} else {
		error = result == SSL_READ_EARLY_DATA_ERROR ? SSL_get_error(tls->ssl, 0)
							    : SSL_ERROR_SSL;
		if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE)
			err = obt_tls_explain(
				&tls->cause, OB_ERR_TLS, "TLS handshake of the session");
	}
	pthread_mutex_unlock(&tls->lock);
	if (!err)
		*ret_ready = ready;
	return err;
}

bool obt_tls_ended(const struct obt_stream *stream)
{
	return stream->tls && SSL_get_shutdown(stream->tls->ssl) & SSL_RECEIVED_SHUTDOWN;
}

bool obt_tls_farewell(struct obt_stream *stream)
{
	bool sent;

	stream->tls->fd = stream->fd;
	pthread_mutex_lock(&stream->tls->lock);
	sent = SSL_shutdown(stream->tls->ssl) >= 0;
	pthread_mutex_unlock(&stream->tls->lock);
	ERR_clear_error();
	return sent;
}
