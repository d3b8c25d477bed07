/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <errno.h>
#include <openssl/err.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "protocol/format.h"
#include "transport/tls_inside.h"

#define RECORD        (16u << 10) /* bytes of one TLS record */
#define READ_AHEAD    (64u << 10)
/* how long a client may take to read what is sent before its Finished */
#define EARLY_SEND_MS 10000

bool obt_tls_plain_bytes(int fd)
{
	uint32_t magic = 0;

	return recv(fd, &magic, sizeof magic, MSG_PEEK | MSG_DONTWAIT) == sizeof magic &&
		magic == OBP_MAGIC;
}

/* ---- the socket under the library ---- */

static bool writable(int fd, int ms)
{
	struct pollfd pfd = { .fd = fd, .events = POLLOUT };
	int n;

	do
		n = poll(&pfd, 1, ms);
	while (n < 0 && errno == EINTR);
	return n > 0;
}

/*
 * OpenSSL's own socket BIO raises SIGPIPE and needs a non-blocking descriptor, a flag that others
 * may share. This one needs neither.
 */
static int bio_write(BIO *bio, const char *data, int size)
{
	struct obt_tls *tls = BIO_get_data(bio);
	ssize_t n;

	BIO_clear_retry_flags(bio);
	do
		n = send(tls->fd, data, (size_t)size, MSG_NOSIGNAL | MSG_DONTWAIT);
	while ((n < 0 && errno == EINTR) ||
		(ob_unlikely(n < 0 && errno == EAGAIN && tls->early) &&
			writable(tls->fd, EARLY_SEND_MS)));
	/*
	 * Before the end of the handshake the library keeps small pieces in a buffer that it
	 * discards at the end: no piece may stay there.
	 */
	if (ob_unlikely(n < 0 && errno == EAGAIN && tls->early)) {
		errno = ETIMEDOUT;
		return -1;
	}
	if (n < 0 && errno == EAGAIN)
		BIO_set_retry_write(bio);
	return (int)n;
}

static int bio_read(BIO *bio, char *data, int size)
{
	struct obt_tls *tls = BIO_get_data(bio);
	ssize_t n;

	BIO_clear_retry_flags(bio);
	if (ob_unlikely(tls->held)) {
		BIO_set_retry_read(bio);
		return -1;
	}
	/* An answer in clear stays in the socket, to be read in another way. */
	if (ob_unlikely(!tls->started && obt_tls_plain_bytes(tls->fd))) {
		tls->plain = true;
		BIO_set_retry_read(bio);
		return -1;
	}
	do
		n = recv(tls->fd, data, (size_t)size, MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN)
		BIO_set_retry_read(bio);
	if (n == 0)
		BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
	return (int)n;
}

static long bio_ctrl(BIO *bio, int command, long number, void *pointer)
{
	(void)number;
	(void)pointer;
	if (command == BIO_CTRL_EOF)
		return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0;
	return command == BIO_CTRL_FLUSH;
}

static BIO_METHOD *bio_method;
static pthread_once_t bio_once = PTHREAD_ONCE_INIT;

static void bio_make(void)
{
	/*
	 * The library runs inside other programs: read no settings file of the machine, and
	 * register nothing to run at exit.
	 */
	OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ATEXIT, NULL);
	bio_method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket");
	if (!bio_method)
		return;
	BIO_meth_set_write(bio_method, bio_write);
	BIO_meth_set_read(bio_method, bio_read);
	BIO_meth_set_ctrl(bio_method, bio_ctrl);
}

/* ---- making and unmaking ---- */

SSL_CTX *obt_tls_context(bool server, bool exact)
{
	SSL_CTX *context;

	pthread_once(&bio_once, bio_make);
	context =
		bio_method ? SSL_CTX_new(server ? TLS_server_method() : TLS_client_method()) : NULL;
	if (!context)
		return NULL;
	SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
	/*
	 * An end of the stream without close_notify is accepted: frames show whether something is
	 * missing.
	 */
	SSL_CTX_set_options(context,
		SSL_OP_IGNORE_UNEXPECTED_EOF | SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
	SSL_CTX_set_mode(
		context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	if (exact) {
		/* tokens and secrets pass through here */
		SSL_CTX_set_options(context, SSL_OP_CLEANSE_PLAINTEXT);
	} else {
		SSL_CTX_set_read_ahead(context, 1);
		SSL_CTX_set_default_read_buffer_len(context, READ_AHEAD);
	}
	return context;
}

SSL *obt_tls_state(struct obt_tls *tls, SSL_CTX *context)
{
	SSL *ssl = SSL_new(context);
	BIO *bio = ssl ? BIO_new(bio_method) : NULL;

	if (!bio) {
		SSL_free(ssl);
		return NULL;
	}
	BIO_set_data(bio, tls);
	BIO_set_init(bio, 1);
	SSL_set_bio(ssl, bio, bio);
	SSL_set_app_data(ssl, tls);
	if (tls->server)
		SSL_set_accept_state(ssl);
	else
		SSL_set_connect_state(ssl);
	return ssl;
}

enum ob_err obt_tls_attach(struct obt_stream *stream, SSL_CTX *context, bool server)
{
	struct obt_tls *tls = calloc(1, sizeof *tls);

	if (!tls)
		return OB_ERR_NO_MEMORY;
	tls->server = server;
	tls->fd = stream->fd;
	tls->ssl = obt_tls_state(tls, context);
	if (!tls->ssl) {
		free(tls);
		return OB_ERR_NO_MEMORY;
	}
	pthread_mutex_init(&tls->lock, NULL);
	stream->ops = &obt_tls_ops;
	stream->tls = tls;
	return OB_ERR_NONE;
}

static void tls_close(struct obt_stream *stream)
{
	struct obt_tls *tls = stream->tls;

	if (stream->fd >= 0) {
		tls->fd = stream->fd;
		/* Sends close_notify if the socket takes it now; does not wait. */
		if (tls->started && pthread_mutex_trylock(&tls->lock) == 0) {
			SSL_shutdown(tls->ssl);
			pthread_mutex_unlock(&tls->lock);
		}
		close(stream->fd);
	}
	SSL_free(tls->ssl);
	pthread_mutex_destroy(&tls->lock);
	OPENSSL_cleanse(tls->psk, sizeof tls->psk);
	free(tls->peer);
	free(tls);
	ERR_clear_error();
	stream->tls = NULL;
	stream->fd = -1;
}

enum ob_err obt_tls_explain(struct ob_cause *ret_cause, enum ob_err code, const char *what)
{
	unsigned long first = ERR_peek_error(), last = ERR_peek_last_error();
	const char *text = last ? ERR_reason_error_string(last) : NULL;

	/* Of a file, for which the last one is "system lib". */
	if (ERR_SYSTEM_ERROR(first))
		text = strerror(ERR_GET_REASON(first));

	ob_cause_set(ret_cause, code, "%s: %s", what,
		text            ? text
			: errno ? strerror(errno)
				: "no reason given");
	ERR_clear_error();
	return code;
}

/* ---- moving bytes ---- */

/*
 * Under the lock, after an operation that moved nothing: sets errno, and *ret_events to what to
 * wait for. 0: the peer has closed.
 */
static ssize_t nothing_moved(struct obt_tls *tls, int result, short *ret_events)
{
	int error = SSL_get_error(tls->ssl, result), saved = errno;

	switch (error) {
	case SSL_ERROR_WANT_READ:
		*ret_events = POLLIN;
		errno = EAGAIN;
		return -1;
	case SSL_ERROR_WANT_WRITE:
		*ret_events = POLLOUT;
		errno = EAGAIN;
		return -1;
	case SSL_ERROR_ZERO_RETURN:
		return 0;
	case SSL_ERROR_SYSCALL:
		ERR_clear_error();
		if (BIO_eof(SSL_get_rbio(tls->ssl)))
			return 0;
		errno = saved && saved != EAGAIN ? saved : ECONNRESET;
		return -1;
	default:
		if (!tls->cause.code)
			obt_tls_explain(
				&tls->cause, OB_ERR_TLS, tls->started ? "TLS" : "TLS handshake");
		ERR_clear_error();
		errno = EPROTO;
		return -1;
	}
}

static bool wait_for(struct obt_tls *tls, short events, unsigned timeout_ms)
{
	struct pollfd pfd = { .fd = tls->fd, .events = events };
	int n;

	do
		n = poll(&pfd, 1, timeout_ms ? (int)timeout_ms : -1);
	while (n < 0 && errno == EINTR);
	errno = EAGAIN;
	return n > 0;
}

static ssize_t recv_once(struct obt_tls *tls, void *data, size_t size, short *ret_events)
{
	ssize_t result;
	int n;

	/* A client without TLS on an address with TLS is answered in clear. */
	if (ob_unlikely(tls->server && !tls->started && obt_tls_plain_bytes(tls->fd))) {
		ob_cause_set(&tls->cause, OB_ERR_TLS,
			"this address speaks TLS only: the client must name it as tls://host:port");
		errno = EPROTONOSUPPORT;
		return -1;
	}
	pthread_mutex_lock(&tls->lock);
	errno = 0;
	n = SSL_read(tls->ssl, data, (int)ob_min(size, (size_t)INT32_MAX));
	result = n > 0 ? n : nothing_moved(tls, n, ret_events);
	tls->more = n > 0 && SSL_has_pending(tls->ssl) == 1;
	if (ob_unlikely(!tls->started || tls->early) && SSL_is_init_finished(tls->ssl)) {
		tls->started = true;
		tls->early = false;
	}
	pthread_mutex_unlock(&tls->lock);
	return result;
}

static ssize_t tls_recv(struct obt_stream *stream, void *data, size_t size, bool block)
{
	struct obt_tls *tls = stream->tls;
	short events = POLLIN;
	ssize_t n;

	tls->fd = stream->fd;
	do
		n = recv_once(tls, data, size, &events);
	while (n < 0 && errno == EAGAIN && block && wait_for(tls, events, tls->recv_timeout_ms));
	return n;
}

/*
 * The next bytes for one call of the library. Small pieces are gathered up to one record. If a
 * record could not be sent, the library demands the same bytes at the next call, which gathering
 * them again provides.
 */
static const void *gather(const struct iovec *iov, int n, uint8_t *record, size_t *ret_size)
{
	size_t at = 0;

	if (iov[0].iov_len >= RECORD || n == 1) {
		*ret_size = iov[0].iov_len;
		return iov[0].iov_base;
	}
	for (int i = 0; i < n && at < RECORD; i++) {
		size_t part = ob_min(iov[i].iov_len, RECORD - at);

		memcpy(record + at, iov[i].iov_base, part);
		at += part;
	}
	*ret_size = at;
	return record;
}

/* Under the lock. Before the client's Finished the library needs another function for sending. */
static int write_some(struct obt_tls *tls, const void *data, size_t size)
{
	size_t done = 0;

	if (ob_likely(!tls->early))
		return SSL_write(tls->ssl, data, (int)ob_min(size, (size_t)INT32_MAX));
	return SSL_write_early_data(tls->ssl, data, ob_min(size, (size_t)INT32_MAX), &done) == 1
		? (int)done
		: -1;
}

/* Sends as much as possible now. */
static ssize_t send_now(struct obt_tls *tls, const struct iovec *iov, int n, short *ret_events)
{
	uint8_t record[RECORD];
	struct iovec rest[8];
	ssize_t total = 0;
	int count = ob_min(n, (int)ob_count(rest)), at;

	memcpy(rest, iov, (size_t)count * sizeof *rest);
	at = obt_iov_advance(rest, count, 0);
	pthread_mutex_lock(&tls->lock);
	while (at < count) {
		size_t size;
		const void *data = gather(rest + at, count - at, record, &size);
		int done;

		errno = 0;
		done = write_some(tls, data, size);
		if (done <= 0) {
			ssize_t result = nothing_moved(tls, done, ret_events);

			if (total == 0)
				total = result == 0 ? (errno = EPIPE, -1) : result;
			break;
		}
		total += done;
		at += obt_iov_advance(rest + at, count - at, (size_t)done);
	}
	pthread_mutex_unlock(&tls->lock);
	return total;
}

static ssize_t tls_send(struct obt_stream *stream, const struct iovec *iov, int n, bool block)
{
	struct obt_tls *tls = stream->tls;
	short events = POLLOUT;
	ssize_t done;

	tls->fd = stream->fd;
	do
		done = send_now(tls, iov, n, &events);
	while (done < 0 && errno == EAGAIN && block && wait_for(tls, events, 0));
	return done;
}

static bool tls_pending(const struct obt_stream *stream)
{
	struct obt_tls *tls = stream->tls;
	bool pending;

	pthread_mutex_lock(&tls->lock);
	pending = tls->more;
	pthread_mutex_unlock(&tls->lock);
	return pending;
}

static const struct ob_cause *tls_cause(const struct obt_stream *stream)
{
	return stream->tls->cause.code ? &stream->tls->cause : NULL;
}

static void tls_set_recv_timeout(struct obt_stream *stream, unsigned ms)
{
	stream->tls->recv_timeout_ms = ms;
}

const struct obt_ops obt_tls_ops = { .name = "tls",
	.send = tls_send,
	.recv = tls_recv,
	.close = tls_close,
	.pending = tls_pending,
	.cause = tls_cause,
	.set_recv_timeout = tls_set_recv_timeout };

bool obt_tls_started(const struct obt_stream *stream)
{
	return stream->tls && stream->tls->started;
}

bool obt_tls_resumed(const struct obt_stream *stream)
{
	const struct obt_tls *tls = stream->tls;

	return tls && (tls->second ? tls->resumed : SSL_session_reused(tls->ssl) == 1);
}

/* ---- a refusal in clear ---- */

static ssize_t refusal_send(struct obt_stream *stream, const struct iovec *iov, int n, bool block)
{
	(void)stream;
	(void)iov;
	(void)n;
	(void)block;
	errno = EPIPE; /* nothing is sent in clear */
	return -1;
}

static ssize_t refusal_recv(struct obt_stream *stream, void *data, size_t size, bool block)
{
	return obt_socket_ops.recv(stream, data, size, block);
}

const struct obt_ops obt_refusal_ops = { .name = "refusal",
	.send = refusal_send,
	.recv = refusal_recv,
	.close = tls_close,
	.pending = tls_pending,
	.cause = tls_cause,
	.set_recv_timeout = tls_set_recv_timeout };
