/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * bench_tls [MIB]: compares our stream with the bare TLS library on the same loopback path,
 * alternating in each round. Also times full and resumed handshakes. Prints medians. Not a test:
 * run by hand.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>

#include "base/check.h"
#include "tests/unit/transport/tls_pair.h"
#include "transport/connect.h"

#define ROUNDS 9
#define FRAME  (256u << 10)

static size_t bytes = 256u << 20;
static uint8_t out[FRAME], in[FRAME];

struct sink {
	struct obt_stream *stream;
	SSL *ssl;
};

static void *ours_take(void *user)
{
	struct sink *sink = user;
	ssize_t n;

	for (size_t at = 0; at < bytes; at += (size_t)n)
		if ((n = sink->stream->ops->recv(sink->stream, in, sizeof in, true)) <= 0)
			exit(1);
	return NULL;
}

static double ours(struct tls_pair *pair)
{
	struct obt_stream client, server;
	struct sink sink = { .stream = &server };
	pthread_t thread;
	uint64_t ns;

	if (!tls_pair_connect(pair, &client, &server, &ns))
		exit(1);
	ns = ob_clock_ns();
	pthread_create(&thread, NULL, ours_take, &sink);
	for (size_t at = 0; at < bytes; at += FRAME) {
		struct iovec iov[3] = { { out, 48 }, { out, 32 }, { out, FRAME - 80 } };

		if (obt_stream_send_all(&client, iov, 3, ob_clock_ns() + 60 * OB_SECOND))
			exit(1);
	}
	pthread_join(thread, NULL);
	ns = ob_clock_ns() - ns;
	obt_stream_close(&client);
	obt_stream_close(&server);
	return (double)bytes / (double)ns;
}

static void *bare_take(void *user)
{
	struct sink *sink = user;
	char byte;
	int n;

	if (SSL_accept(sink->ssl) != 1 || SSL_read(sink->ssl, &byte, 1) != 1)
		exit(1);
	for (size_t at = 0; at < bytes; at += (size_t)n)
		if ((n = SSL_read(sink->ssl, in, sizeof in)) <= 0)
			exit(1);
	return NULL;
}

static double bare(struct tls_pair *pair)
{
	SSL_CTX *to = SSL_CTX_new(TLS_client_method()), *from = SSL_CTX_new(TLS_server_method());
	struct obt_url url = pair->url;
	struct obt_stream plain;
	struct sink sink;
	pthread_t thread;
	SSL *ssl;
	uint64_t ns;
	int fd, one = 1;

	url.scheme = OBT_TCP;
	SSL_CTX_set_min_proto_version(from, TLS1_3_VERSION);
	if (SSL_CTX_use_certificate_chain_file(from, pair->cert) != 1 ||
		SSL_CTX_use_PrivateKey_file(from, pair->key, SSL_FILETYPE_PEM) != 1 ||
		obt_stream_connect(&url, ob_clock_ns() + OB_SECOND, &plain, NULL) ||
		(fd = accept(pair->listener, NULL, NULL)) < 0)
		exit(1);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	sink = (struct sink){ .ssl = SSL_new(from) };
	ssl = SSL_new(to);
	SSL_set_fd(sink.ssl, fd);
	SSL_set_fd(ssl, plain.fd);
	pthread_create(&thread, NULL, bare_take, &sink);
	if (SSL_connect(ssl) != 1 || SSL_write(ssl, "x", 1) != 1)
		exit(1);
	ns = ob_clock_ns();
	for (size_t at = 0; at < bytes; at += FRAME)
		if (SSL_write(ssl, out, FRAME) != FRAME)
			exit(1);
	pthread_join(thread, NULL);
	ns = ob_clock_ns() - ns;
	SSL_free(ssl);
	SSL_free(sink.ssl);
	SSL_CTX_free(to);
	SSL_CTX_free(from);
	close(fd);
	obt_stream_close(&plain);
	return (double)bytes / (double)ns;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, size_t n)
{
	qsort(values, n, sizeof *values, by_value);
	return values[n / 2];
}

/*
 * The client keeps one ticket by the server's name: two alternating names never find theirs, a
 * single name always does.
 */
static double handshake(struct tls_pair *pair, bool resume)
{
	double times[101];
	struct obt_stream client, server;
	uint64_t ns;
	char byte;

	for (size_t i = 0; i < 102; i++) {
		snprintf(pair->url.host, sizeof pair->url.host, "%s",
			resume || i % 2 ? "127.0.0.1" : "localhost");
		if (!tls_pair_connect(pair, &client, &server, &ns) ||
			(i && obt_tls_resumed(&client) != resume))
			exit(1);
		if (i)
			times[i - 1] = (double)ns / 1e3;
		if (client.ops->recv(&client, &byte, 1, false) > 0) /* receives the ticket */
			exit(1);
		obt_stream_close(&client);
		obt_stream_close(&server);
	}
	return median(times, ob_count(times));
}

static void handshakes(struct tls_pair *pair)
{
	double full = handshake(pair, false), resumed = handshake(pair, true);

	printf("handshake, connect included, medians of 101: full %.0f us, resumed %.0f us\n", full,
		resumed);
}

int main(int argc, char **argv)
{
	struct tls_pair pair;
	double a[ROUNDS], b[ROUNDS];
	uint64_t mib;

	if (argc > 1 && ob_text_parse_number(argv[1], 1, 65536, &mib))
		bytes = mib << 20;
	if (!tls_pair_init(&pair))
		return 1;
	handshakes(&pair);
	for (int i = 0; i < ROUNDS; i++) {
		a[i] = ours(&pair);
		b[i] = bare(&pair);
	}
	printf("bulk, %zu MiB, medians of %d: our stream %.2f GB/s, bare library %.2f GB/s: %.2f\n",
		bytes >> 20, ROUNDS, median(a, ROUNDS), median(b, ROUNDS),
		median(a, ROUNDS) / median(b, ROUNDS));
	tls_pair_fini(&pair);
	return 0;
}
