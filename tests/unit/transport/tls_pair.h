/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A TLS client and server in one process, over a pair of sockets that behave like network sockets.
 * Shared by the test and the benchmark.
 */
#ifndef TLS_PAIR_H
#define TLS_PAIR_H

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "transport/connect.h"
#include "transport/tls.h"

#define PREFACE "the clear preface"

struct tls_pair {
	char cert[80], key[80], directory[40];
	struct obt_tls_server *server;
	struct obt_url url;
	int listener;
};

struct tls_server_side {
	struct obt_tls_server *server;
	struct obt_stream stream;
	int fd;
	ssize_t got;
	bool resumed;
};

/* Makes the certificate and lets the client trust it. False: the reason is on stderr. */
static inline bool tls_pair_init(struct tls_pair *pair)
{
	struct ob_cause cause;
	char pin[2 * OBT_TLS_PIN_BYTES + 1], address[OBT_URL_MAX + 8];
	uint8_t digest[OBT_TLS_PIN_BYTES];

	strcpy(pair->directory, "/tmp/outboard-tls-XXXXXX");
	if (!mkdtemp(pair->directory))
		return false;
	snprintf(pair->cert, sizeof pair->cert, "%s/cert", pair->directory);
	snprintf(pair->key, sizeof pair->key, "%s/key", pair->directory);
	if (obt_tls_make_certificate(pair->cert, pair->key, "127.0.0.1", 10, digest, &cause) ||
		!(pair->server = obt_tls_server_new(pair->cert, pair->key, NULL, &cause))) {
		fprintf(stderr, "%s\n", cause.text);
		return false;
	}
	ob_text_hex(digest, sizeof digest, pin);
	setenv("OUTBOARD_TLS_PIN", pin, 1);
	obt_url_parse("tcp://127.0.0.1:0", &pair->url, NULL);
	if (obt_listen(&pair->url, 16, &pair->listener, address, sizeof address, &cause)) {
		fprintf(stderr, "%s\n", cause.text);
		return false;
	}
	memcpy(address, "tls", 3);
	return obt_url_parse(address, &pair->url, NULL) == OB_ERR_NONE;
}

static inline void tls_pair_fini(struct tls_pair *pair)
{
	close(pair->listener);
	obt_tls_server_free(pair->server);
	unlink(pair->cert);
	unlink(pair->key);
	rmdir(pair->directory);
}

/*
 * The server's side: receives one byte in the first TLS layer, ends that layer, then starts the
 * second one, as the admission process and a worker do. Only the key is passed from one to the
 * other.
 */
static inline void *tls_server_main(void *user)
{
	struct tls_server_side *side = user;
	uint8_t psk[OBT_TLS_PSK_BYTES];
	char preface[sizeof PREFACE], end;
	struct obt_stream first;
	bool ready = false;

	if (recv(side->fd, preface, sizeof preface, MSG_WAITALL) != sizeof preface ||
		obt_tls_accept(side->server, dup(side->fd), &first))
		return NULL;
	side->got = first.ops->recv(&first, preface + sizeof PREFACE - 1, 1, true);
	side->resumed = obt_tls_resumed(&first);
	if (side->got == 1 && first.ops->recv(&first, &end, 1, true) == 0 &&
		obt_tls_ended(&first) && obt_tls_export(&first, PREFACE, sizeof PREFACE, psk) &&
		obt_tls_farewell(&first) &&
		obt_tls_accept_data(side->fd, psk, &side->stream) == OB_ERR_NONE)
		while (!obt_tls_answer(&side->stream, &ready) && !ready)
			obt_stream_wait(&side->stream, POLLIN, ob_clock_ns() + OB_SECOND);
	side->got = ready;
	obt_stream_close(&first);
	return NULL;
}

/*
 * Connects both sides. *ret_ns: time from connect to the end of the client's handshake. False: the
 * client's reason is on stderr.
 */
static inline bool tls_pair_connect(struct tls_pair *pair, struct obt_stream *ret_client,
	struct obt_stream *ret_server, uint64_t *ret_ns)
{
	struct tls_server_side side = { .server = pair->server };
	uint64_t begin = ob_clock_ns(), deadline = begin + 10 * OB_SECOND;
	struct iovec one = { (void *)(uintptr_t) "x", 1 };
	enum ob_err err = obt_stream_connect(&pair->url, deadline, ret_client, NULL);
	pthread_t thread;

	fcntl(pair->listener, F_SETFL, 0);
	if (err || (side.fd = accept4(pair->listener, NULL, NULL, SOCK_CLOEXEC)) < 0 ||
		pthread_create(&thread, NULL, tls_server_main, &side))
		return false;
	err = obt_tls_start(ret_client, PREFACE, sizeof PREFACE, deadline);
	*ret_ns = ob_clock_ns() - begin;
	if (!err)
		err = obt_stream_send_all(ret_client, &one, 1, deadline);
	if (!err)
		err = obt_tls_hand_on(ret_client, PREFACE, sizeof PREFACE, deadline);
	pthread_join(thread, NULL);
	*ret_server = side.stream;
	if (err || side.got != 1)
		fprintf(stderr, "%s\n",
			obt_stream_cause(ret_client) ? obt_stream_cause(ret_client)->text
						     : ob_err_text(err));
	return !err && side.got == 1;
}

#endif
