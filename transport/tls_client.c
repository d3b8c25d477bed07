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
#include "transport/tls_inside.h"

#define PINS_MAX 64u /* certificates of OUTBOARD_TLS_PIN */

/*
 * One context for the process: what it trusts does not change, and tickets of earlier connections
 * are reused.
 */
static struct {
	pthread_mutex_t lock;
	SSL_CTX *context;
	unsigned n_pins; /* 0: the chain is checked */
	uint8_t pins[PINS_MAX][OBT_TLS_PIN_BYTES];
	SSL_SESSION *session; /* the newest ticket, of `url` */
	char url[OBT_URL_MAX + 1];
} client = { .lock = PTHREAD_MUTEX_INITIALIZER };

static const char *setting(const char *name)
{
	const char *text = getenv(name);

	return text && *text ? text : NULL;
}

/*
 * 64 hexadecimal digits, with or without colons between them and "sha256:" before them, up to a comma
 * or the end. *ret_end: what follows.
 */
static bool pin_parse(const char *text, uint8_t ret[OBT_TLS_PIN_BYTES], const char **ret_end)
{
	size_t n = 0;

	if (strncasecmp(text, "sha256:", 7) == 0)
		text += 7;
	for (; *text && *text != ','; text++) {
		unsigned digit;

		if (*text == ':')
			continue;
		if (*text >= '0' && *text <= '9')
			digit = (unsigned)(*text - '0');
		else if ((*text | 32) >= 'a' && (*text | 32) <= 'f')
			digit = (unsigned)((*text | 32) - 'a' + 10);
		else
			return false;
		if (n == 2 * OBT_TLS_PIN_BYTES)
			return false;
		ret[n / 2] = (uint8_t)(n % 2 ? ret[n / 2] | digit : digit << 4);
		n++;
	}
	*ret_end = text;
	return n == 2 * OBT_TLS_PIN_BYTES;
}

/* One pin, or several with commas: those of servers that are used together. */
static bool pins_parse(const char *text)
{
	client.n_pins = 0;
	while (client.n_pins < PINS_MAX && pin_parse(text, client.pins[client.n_pins], &text)) {
		client.n_pins++;
		if (!*text)
			return true;
		text++;
	}
	return false;
}

static bool is_pinned(const uint8_t digest[OBT_TLS_PIN_BYTES])
{
	for (unsigned i = 0; i < client.n_pins; i++)
		if (CRYPTO_memcmp(digest, client.pins[i], OBT_TLS_PIN_BYTES) == 0)
			return true;
	return false;
}

/* Replaces the check of the certificate chain: accepts only a pinned certificate. */
static int pin_check(X509_STORE_CTX *store, void *unused)
{
	uint8_t digest[EVP_MAX_MD_SIZE];
	unsigned size = 0;
	X509 *cert = X509_STORE_CTX_get0_cert(store);

	(void)unused;
	if (cert && X509_digest(cert, EVP_sha256(), digest, &size) && size == OBT_TLS_PIN_BYTES &&
		is_pinned(digest)) {
		X509_STORE_CTX_set_error(store, X509_V_OK);
		return 1;
	}
	X509_STORE_CTX_set_error(store, X509_V_ERR_APPLICATION_VERIFICATION);
	return 0;
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
	char what[160];

	client.n_pins = 0;
	if (pin && !pins_parse(pin))
		return ob_cause_set(ret_cause, OB_ERR_TLS,
			"OUTBOARD_TLS_PIN is not the 64 hexadecimal digits of a SHA-256, or "
			"several "
			"with commas; 'outboard cert' prints them");
	if (!pin && ca && SSL_CTX_load_verify_file(context, ca) != 1) {
		snprintf(what, sizeof what, "OUTBOARD_TLS_CA: %.100s", ca);
		return obt_tls_explain(ret_cause, OB_ERR_TLS, what);
	}
	if (!pin && !ca)
		SSL_CTX_set_default_verify_paths(context);
	if (pin)
		SSL_CTX_set_cert_verify_callback(context, pin_check, NULL);
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

enum ob_err obt_tls_client(
	struct obt_stream *stream, const struct obt_url *url, struct ob_cause *ret_cause)
{
	char text[OBT_URL_MAX + 1];
	SSL_CTX *context;
	struct in6_addr address;
	enum ob_err err = OB_ERR_NONE;
	bool is_address = inet_pton(AF_INET, url->host, &address) == 1 ||
		inet_pton(AF_INET6, url->host, &address) == 1;

	snprintf(text, sizeof text, "%s:%s", url->host, url->port);
	pthread_mutex_lock(&client.lock);
	context = client.context ? client.context : obt_tls_context(false, true);
	if (!context) {
		pthread_mutex_unlock(&client.lock);
		return ob_cause_set(ret_cause, OB_ERR_NO_MEMORY, "no memory for TLS");
	}
	if (!client.context && (err = context_load(context, ret_cause)) != OB_ERR_NONE) {
		pthread_mutex_unlock(&client.lock);
		SSL_CTX_free(context);
		return err;
	}
	client.context = context;
	err = obt_tls_attach(stream, context, false);
	if (err) {
		ob_cause_set(ret_cause, err, "no memory for TLS");
	} else {
		SSL *ssl = stream->tls->ssl;

		if (client.session && strcmp(client.url, text) == 0)
			SSL_set_session(ssl, client.session);
		stream->tls->peer = strdup(text);
		if (!is_address)
			SSL_set_tlsext_host_name(ssl, url->host);
		if (!client.n_pins && is_address)
			X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), url->host);
		else if (!client.n_pins)
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
	if (client.n_pins)
		return ob_cause_set(&tls->cause, OB_ERR_CERTIFICATE,
			"the server's certificate is not the one that OUTBOARD_TLS_PIN names");
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
			if (error == SSL_ERROR_SYSCALL || (n == 0 && !ERR_peek_last_error())) {
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
