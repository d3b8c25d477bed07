/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "transport/pin.h"
#include "transport/tls_inside.h"

/*
 * One context for the process: what it trusts does not change, and tickets of earlier connections
 * are reused.
 */
static struct {
	pthread_mutex_t lock;
	SSL_CTX *context;
	struct obt_pins pins;
	SSL_SESSION *session; /* the newest ticket, of `url` */
	char url[OBT_URL_MAX + 1];
} client = { .lock = PTHREAD_MUTEX_INITIALIZER };

static const char *setting(const char *name)
{
	const char *text = getenv(name);

	return text && *text ? text : NULL;
}

/*
 * Replaces the check of the certificate chain: where the address has pins, accepts only a
 * certificate of theirs.
 */
static int certificate_check(X509_STORE_CTX *store, void *unused)
{
	const SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
	const struct obt_tls *tls = SSL_get_app_data(ssl);
	X509 *cert = X509_STORE_CTX_get0_cert(store);
	uint8_t digest[EVP_MAX_MD_SIZE];
	unsigned size = 0;
	bool good;

	(void)unused;
	if (!tls->pinned)
		return X509_verify_cert(store);
	if (!cert || !X509_digest(cert, EVP_sha256(), digest, &size) || size != OBT_PIN_BYTES)
		size = 0;
	pthread_mutex_lock(&client.lock);
	good = size && tls->peer && obt_pins_accept(&client.pins, tls->peer, digest);
	pthread_mutex_unlock(&client.lock);
	X509_STORE_CTX_set_error(store, good ? X509_V_OK : X509_V_ERR_APPLICATION_VERIFICATION);
	return good;
}

/* Stores the server's newest ticket. */
static int session_keep(SSL *ssl, SSL_SESSION *session)
{
	const struct obt_tls *tls = SSL_get_app_data(ssl);

	pthread_mutex_lock(&client.lock);
	SSL_SESSION_free(client.session);
	client.session = session;
	snprintf(client.url, sizeof client.url, "%s", tls->peer ? tls->peer : "");
	pthread_mutex_unlock(&client.lock);
	return 1; /* the reference is kept */
}

/* Under the lock. OB_ERR_TLS: *ret_cause. */
static enum ob_err context_load(SSL_CTX *context, struct ob_cause *ret_cause)
{
	const char *pin = setting("OUTBOARD_TLS_PIN"), *ca = setting("OUTBOARD_TLS_CA");
	const char *cert = setting("OUTBOARD_TLS_CERT"), *key = setting("OUTBOARD_TLS_KEY");
	struct ob_cause cause;
	bool general;
	char what[160];

	client.pins.n = 0;
	if (pin && obt_pins_add(&client.pins, pin, false, &cause))
		return ob_cause_set(ret_cause, OB_ERR_TLS, "OUTBOARD_TLS_PIN: %s", cause.text);
	general = obt_pins_apply(&client.pins, ""); /* then no address needs authorities */
	if (!general && ca && SSL_CTX_load_verify_file(context, ca) != 1) {
		snprintf(what, sizeof what, "OUTBOARD_TLS_CA: %.100s", ca);
		return obt_tls_explain(ret_cause, OB_ERR_TLS, what);
	}
	if (!general && !ca)
		SSL_CTX_set_default_verify_paths(context);
	SSL_CTX_set_cert_verify_callback(context, certificate_check, NULL);
	SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
	if (cert &&
		(SSL_CTX_use_certificate_chain_file(context, cert) != 1 ||
			SSL_CTX_use_PrivateKey_file(context, key ? key : cert, SSL_FILETYPE_PEM) !=
				1 ||
			SSL_CTX_check_private_key(context) != 1)) {
		snprintf(what, sizeof what, "OUTBOARD_TLS_CERT: %.100s", cert);
		return obt_tls_explain(ret_cause, OB_ERR_TLS, what);
	}
	SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
	SSL_CTX_sess_set_new_cb(context, session_keep);
	return OB_ERR_NONE;
}

/* Under the lock. Makes the context with the first call. OB_ERR_TLS, _NO_MEMORY: *ret_cause. */
static enum ob_err context_make(struct ob_cause *ret_cause)
{
	SSL_CTX *context;
	enum ob_err err;

	if (client.context)
		return OB_ERR_NONE;
	context = obt_tls_context(false, true);
	if (!context)
		return ob_cause_set(ret_cause, OB_ERR_NO_MEMORY, "no memory for TLS");
	err = context_load(context, ret_cause);
	if (err)
		SSL_CTX_free(context);
	else
		client.context = context;
	return err;
}

enum ob_err obt_tls_client_load(struct ob_cause *ret_cause)
{
	enum ob_err err;

	pthread_mutex_lock(&client.lock);
	err = context_make(ret_cause);
	pthread_mutex_unlock(&client.lock);
	return err;
}

enum ob_err obt_tls_pins_add(const char *pins, struct ob_cause *ret_cause)
{
	enum ob_err err;

	pthread_mutex_lock(&client.lock);
	err = context_make(ret_cause);
	if (!err)
		err = obt_pins_add(&client.pins, pins, true, ret_cause);
	pthread_mutex_unlock(&client.lock);
	return err;
}

enum ob_err obt_tls_client(
	struct obt_stream *stream, const struct obt_url *url, struct ob_cause *ret_cause)
{
	char text[OBT_URL_MAX + 1];
	struct in6_addr address;
	enum ob_err err;
	bool is_address = inet_pton(AF_INET, url->host, &address) == 1 ||
		inet_pton(AF_INET6, url->host, &address) == 1;

	snprintf(text, sizeof text, "%s:%s", url->host, url->port);
	pthread_mutex_lock(&client.lock);
	err = context_make(ret_cause);
	if (err) {
		pthread_mutex_unlock(&client.lock);
		return err;
	}
	err = obt_tls_attach(stream, client.context, false);
	if (err) {
		ob_cause_set(ret_cause, err, "no memory for TLS");
	} else {
		SSL *ssl = stream->tls->ssl;

		if (client.session && strcmp(client.url, text) == 0)
			SSL_set_session(ssl, client.session);
		stream->tls->peer = strdup(text);
		stream->tls->pinned = obt_pins_apply(&client.pins, text);
		if (!is_address)
			SSL_set_tlsext_host_name(ssl, url->host);
		if (!stream->tls->pinned && is_address)
			X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), url->host);
		else if (!stream->tls->pinned)
			SSL_set1_host(ssl, url->host);
	}
	pthread_mutex_unlock(&client.lock);
	return err;
}

static enum ob_err handshake_failed(struct obt_tls *tls, const char *host)
{
	long verified = SSL_get_verify_result(tls->ssl);

	if (verified == X509_V_OK)
		return obt_tls_explain(&tls->cause, OB_ERR_TLS, "TLS handshake");
	ERR_clear_error();
	if (tls->pinned)
		return ob_cause_set(&tls->cause, OB_ERR_CERTIFICATE,
			"the server's certificate is not the one that OUTBOARD_TLS_PIN names, or "
			"the pool");
	return ob_cause_set(&tls->cause, OB_ERR_CERTIFICATE,
		"the server's certificate is not trusted: %s (for %s, by %s)",
		X509_verify_cert_error_string(verified), host,
		setting("OUTBOARD_TLS_CA") ? "OUTBOARD_TLS_CA"
					   : "the system's authorities; OUTBOARD_TLS_CA or "
					     "OUTBOARD_TLS_PIN name others");
}

enum ob_err obt_tls_handshake(struct obt_stream *stream, uint64_t deadline)
{
	struct obt_tls *tls = stream->tls;
	const char *host = tls->peer;

	for (;;) {
		struct pollfd pfd = { .fd = stream->fd };
		int n, error;

		errno = 0;
		n = SSL_connect(tls->ssl);
		if (n == 1)
			return OB_ERR_NONE;
		error = SSL_get_error(tls->ssl, n);
		/* a server without TLS, or one that refuses the client before TLS */
		if (tls->plain) {
			stream->ops = &obt_refusal_ops;
			return OB_ERR_CLOSED;
		}
		if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) {
			if (error == SSL_ERROR_SYSCALL || error == SSL_ERROR_ZERO_RETURN ||
				(n == 0 && !ERR_peek_last_error())) {
				ERR_clear_error();
				return ob_cause_set(&tls->cause, OB_ERR_CLOSED,
					"the server closed the connection during the TLS "
					"handshake");
			}
			return handshake_failed(tls, host ? host : "?");
		}
		pfd.events = error == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
		do
			n = poll(&pfd, 1, ob_clock_poll_ms(deadline));
		while (n < 0 && errno == EINTR);
		if (n == 0)
			return ob_cause_set(&tls->cause, OB_ERR_TIMEOUT,
				"the server did not answer the TLS handshake in time");
	}
}

enum ob_err obt_tls_start(
	struct obt_stream *stream, const void *before, size_t size, uint64_t deadline)
{
	struct obt_stream clear = { .ops = &obt_socket_ops, .fd = stream->fd };
	struct iovec iov = { (void *)(uintptr_t)before, size };
	enum ob_err err = obt_stream_send_all(&clear, &iov, 1, deadline);

	if (err)
		return err;
	stream->tls->fd = stream->fd;
	pthread_mutex_lock(&stream->tls->lock);
	err = obt_tls_handshake(stream, deadline);
	stream->tls->started = err == OB_ERR_NONE;
	pthread_mutex_unlock(&stream->tls->lock);
	return err;
}
