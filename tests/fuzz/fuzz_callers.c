/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The admission process and several peers, authenticated or not, over Unix sockets and TCP, with
 * and without TLS. They send prefaces, hellos, joins and queries, correct or with an error, in
 * pieces, with trailing bytes, with descriptors, unfinished, or bytes that are no message at all. A
 * supervisor announces which sessions exist. A connection that is handed over must have presented
 * its token or its session's secret; a closed one must leave no state.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "protocol/load.h"
#include "server/admission/address.h"
#include "server/admission/caller.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_child.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/fuzz_peer.h"
#include "tests/fuzz/fuzz_stream.h"
#include "transport/tls_inside.h"
#include "transport/token.h"

#define STEPS_MAX 40u
#define PEERS_MAX 6u
#define ROUTES    3u
#define TURNS_MAX 1000
#define SENT_MAX  (STEPS_MAX * (OBS_HANDOFF_BODY + 256u)) /* bytes that one peer sends at most */

struct peer {
	int fd; /* -1: none */
	bool secure, local;
	unsigned route; /* index of the route in its preface; ROUTES: none */
	uint8_t intent;
	struct obt_stream layer; /* TLS layer over fd; ops NULL: no TLS */
	size_t n_sent;
	uint8_t sent[SENT_MAX]; /* bytes the server may have read, decrypted */
};

static struct obs_callers admission;
static struct obs_options options;
static struct obs_routes *routes;
static struct obs_pool_page pool;
static uint8_t ticket[OBP_HELLO_TICKET];
static uint32_t ticket_size;
static struct obs_handoff handed;
static struct peer peers[PEERS_MAX];
static struct sockaddr_in here;
static int listener = -1, channel = -1;
static char token[OBT_TOKEN_TEXT];
static char folder[] = "/tmp/outboard-fuzz-XXXXXX", cert[64], key[64], tokens[64];
static bool alive[ROUTES];

static uint64_t route_of(unsigned i)
{
	return 0x1000 + i;
}

static void secret_of(unsigned i, uint8_t ret[OBP_SECRET_BYTES])
{
	memset(ret, (int)(0x50 + i), OBP_SECRET_BYTES);
}

/* ---- the supervisor ---- */

static void session_tell(unsigned i, bool there)
{
	uint8_t secret[OBP_SECRET_BYTES];

	secret_of(i, secret);
	if (!there)
		obs_routes_remove(routes, route_of(i));
	else if (!alive[i] && !obs_routes_put(routes, route_of(i), secret))
		abort();
	alive[i] = there;
}

/* Whether one of the present peers has sent these bytes. */
static bool shown(const void *bytes, size_t size)
{
	for (unsigned i = 0; i < PEERS_MAX; i++)
		if (memmem(peers[i].sent, peers[i].n_sent, bytes, size))
			return true;
	return false;
}

static void handed_check(const int fds[OBS_HANDOFF_FDS])
{
	static struct obp_message m;
	uint8_t secret[OBP_SECRET_BYTES];

	if (handed.type == OBS_HANDOFF_TICKET) {
		if (handed.count >= OBS_TICKET_REFUSAL_COUNT)
			abort();
		return;
	}
	if (handed.type == OBS_HANDOFF_REFUSED) {
		fuzz_text_check(handed.text, sizeof handed.text);
		return;
	}
	if (fds[0] < 0)
		abort();
	if (handed.type == OBS_HANDOFF_LOAD)
		return;
	if (obp_message_decode(handed.body, handed.size, &m) != OB_ERR_NONE)
		abort();
	if (handed.type == OBS_HANDOFF_JOIN) {
		if (m.type != OBP_MSG_JOIN || handed.route - route_of(0) >= ROUTES)
			abort();
		secret_of((unsigned)(handed.route - route_of(0)), secret);
		if (!shown(secret, sizeof secret))
			abort();
	} else {
		if (handed.type != OBS_HANDOFF_NEW || m.type != OBP_MSG_HELLO || m.hello.token[0] || m.hello.ticket_size ||
			memmem(&handed, sizeof handed, token, strlen(token)))
			abort();
		if (handed.ticketed ? !shown(ticket, ticket_size) || !handed.identity.proved
				    : handed.identity.proved
				? !shown(token, strlen(token)) || (pool.on && !pool.direct)
				: strcmp(handed.identity.from, "unix") != 0)
			abort();
	}
	obp_message_fini(&m);
}

static void supervisor_reads(void)
{
	int fds[OBS_HANDOFF_FDS];

	while (obs_handoff_recv(channel, &handed, fds) > 0) {
		handed_check(fds);
		obs_handoff_close(fds);
	}
}

/* ---- peers ---- */

static void peer_open(struct peer *p)
{
	int ends[2];

	supervisor_reads(); /* before the predecessor's sent bytes are forgotten */
	p->n_sent = 0;
	p->route = ROUTES;
	p->intent = OBP_INTENT_NEW;
	p->secure = fuzz_take(3) == 2;
	p->local = !p->secure && fuzz_take(2);
	if (p->local) {
		fuzz_pair(SOCK_STREAM, ends);
	} else {
		ends[1] = fuzz_connect(&here);
		ends[0] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	}
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	p->fd = ends[1];
	/* An address is refused for a minute after a few wrong tokens: mostly reset its count. */
	if (fuzz_take(8) != 7)
		obs_address_right(obs_address_of(ends[0], ob_clock_ns()));
	obs_caller_admit(&admission, ends[0], p->secure);
}

static void peer_close(struct peer *p)
{
	if (p->layer.ops) {
		p->layer.fd = -1; /* close_notify is not sent */
		obt_stream_close(&p->layer);
	}
	fuzz_reset(&p->fd);
}

static void peer_send(struct peer *p, const void *bytes, size_t size)
{
	struct iovec iov = { (void *)(uintptr_t)bytes, size };
	size_t kept = ob_min(size, SENT_MAX - p->n_sent);
	int fds[FUZZ_SENT_FDS], other;
	unsigned n = p->local && fuzz_take(8) == 7 ? fuzz_take(FUZZ_SENT_FDS + 1) : 0;

	memcpy(p->sent + p->n_sent, bytes, kept);
	p->n_sent += kept;
	if (p->layer.ops) {
		if (p->layer.ops->send(&p->layer, &iov, 1, false) < 0)
			return;
	}
	for (unsigned i = 0; i < n && !p->layer.ops; i++) {
		fds[i] = fuzz_descriptor(&other);
		if (other >= 0)
			close(other);
	}
	if (!p->layer.ops) {
		fuzz_send(p->fd, bytes, size, fds, n, fuzz_take(2));
		for (unsigned i = 0; i < n; i++)
			close(fds[i]);
	}
}

/* Sends everything at once, or in two pieces with a turn of the loop between them. */
static void peer_send_in_pieces(struct peer *p, const uint8_t *bytes, size_t size)
{
	size_t first = fuzz_take(4) == 3 ? fuzz_take(256) : size;

	first = ob_min(first, size);
	peer_send(p, bytes, first);
	if (first == size)
		return;
	uv_run(&admission.loop, UV_RUN_NOWAIT);
	peer_send(p, bytes + first, size - first);
}

static void preface(struct peer *p)
{
	static const uint8_t intents[] = { OBP_INTENT_NEW, OBP_INTENT_NEW, OBP_INTENT_JOIN,
		OBP_INTENT_JOIN, OBP_INTENT_LOAD };
	struct obp_preface preface = { .magic = OBP_MAGIC, .version = OBP_VERSION };

	p->route = fuzz_take(8) == 7 ? ROUTES : fuzz_take(ROUTES);
	p->intent = preface.intent =
		(uint8_t)(fuzz_take(8) == 7 ? fuzz_take(256)
					    : intents[fuzz_take(ob_count(intents))]);
	if (preface.intent != OBP_INTENT_NEW || fuzz_take(8) == 7)
		preface.route = p->route < ROUTES ? route_of(p->route) : fuzz_number();
	if (fuzz_take(8) == 7)
		fuzz_spoil(&preface, sizeof preface);
	peer_send_in_pieces(p, (const uint8_t *)&preface, sizeof preface);
}

static void message(struct peer *p)
{
	static struct obp_message m;
	static uint8_t wire[OBS_HANDOFF_BODY + 4096];
	struct obp_hello *hello = &m.hello;
	uint8_t behind = fuzz_take(8) == 7 ? (uint8_t)fuzz_take(64) : 0;
	size_t n;

	memset(&m, 0, sizeof m);
	m.type = p->intent == OBP_INTENT_JOIN ? OBP_MSG_JOIN : OBP_MSG_HELLO;
	if (fuzz_take(16) == 15)
		m.type = (enum obp_message_type)(1 + fuzz_take(11));
	m.shm = fuzz_take(8) == 7 ? (uint32_t)fuzz_number() : fuzz_take(2);
	m.code = fuzz_take(4);
	m.attempt = fuzz_number();
	m.received = fuzz_number();
	secret_of(fuzz_take(8) == 7 ? fuzz_take(ROUTES) : p->route, m.secret);
	hello->n_ranges = fuzz_take(OBP_RANGE_MAX + 1);
	hello->pid = fuzz_number();
	fuzz_text(hello->program, sizeof hello->program - 1);
	fuzz_text(hello->version, sizeof hello->version - 1);
	if (fuzz_take(4))
		snprintf(hello->token, sizeof hello->token, "%s", token);
	if (fuzz_take(8) == 7) {
		n = fuzz_take(sizeof token - 1);
		hello->token[n] ^= (char)(1 + fuzz_take(0x7f));
	}
	if (fuzz_take(2)) {
		hello->ticket_size = ticket_size;
		memcpy(hello->ticket, ticket, ticket_size);
		if (fuzz_take(8) == 7)
			hello->ticket[fuzz_take(ticket_size)] ^= (uint8_t)(1 + fuzz_take(0x7f));
	}
	fuzz_wire_clear();
	fuzz_wire_put_message(&m);
	n = ob_min(fuzz_wire.size, (size_t)OBS_HANDOFF_BODY);
	memcpy(wire, fuzz_wire.data, n);
	if (n && fuzz_take(8) == 7)
		fuzz_spoil(wire, n);
	fuzz_take_bytes(wire + n, behind);
	peer_send_in_pieces(p, wire, n + behind);
}

static void bytes(struct peer *p)
{
	uint8_t data[256];
	size_t n = fuzz_take(sizeof data);

	fuzz_take_bytes(data, n);
	peer_send_in_pieces(p, data, n);
}

/*
 * Starts the TLS layer of a client that knows the secret of a session. The TLS library drives the
 * steps.
 */
static void layer_begin(struct peer *p)
{
	uint8_t secret[OBP_SECRET_BYTES];
	SSL_CTX *context;

	if (!p->secure || p->layer.ops)
		return;
	context = obt_tls_context(false, true);
	p->layer = (struct obt_stream){ .fd = p->fd };
	obt_stream_adopt(&p->layer, p->fd);
	secret_of(fuzz_take(8) == 7 ? fuzz_take(ROUTES) : p->route, secret);
	if (!context || obt_tls_attach(&p->layer, context, false) != OB_ERR_NONE ||
		obt_tls_use_secret(&p->layer, secret, sizeof secret) != OB_ERR_NONE) {
		fprintf(stderr, "no TLS\n");
		exit(1);
	}
	SSL_CTX_free(context);
	for (int i = 0; i < 8 && SSL_connect(p->layer.tls->ssl) != 1; i++)
		uv_run(&admission.loop, UV_RUN_NOWAIT);
	p->layer.tls->started = SSL_is_init_finished(p->layer.tls->ssl);
}

static void layer_end(struct peer *p)
{
	if (p->layer.ops && p->layer.tls->started)
		SSL_shutdown(p->layer.tls->ssl);
}

/* Connects as a client does; every part of the message may be wrong. */
static void visit(struct peer *p)
{
	peer_open(p);
	preface(p);
	uv_run(&admission.loop, UV_RUN_NOWAIT);
	if (fuzz_take(8) != 7)
		layer_begin(p);
	message(p);
	uv_run(&admission.loop, UV_RUN_NOWAIT);
	if (fuzz_take(4) != 3)
		layer_end(p);
}

static void step(void)
{
	struct peer *p = &peers[fuzz_take(PEERS_MAX)];
	unsigned what = fuzz_take(16), route = fuzz_take(ROUTES);

	if (what == 0)
		session_tell(route, fuzz_take(4) != 3);
	else if (what == 1)
		obs_caller_sweep(&admission, ob_clock_ns() + fuzz_take(4) * OB_SECOND);
	else if (what == 2)
		supervisor_reads();
	else if (what == 3)
		obs_caller_make_room(&admission);
	else if (p->fd < 0 && fuzz_take(2))
		visit(p);
	else if (p->fd < 0)
		peer_open(p);
	else if (what < 7)
		preface(p);
	else if (what < 11)
		message(p);
	else if (what == 11)
		bytes(p);
	else if (what == 12)
		layer_begin(p);
	else if (what == 13)
		layer_end(p);
	else if (what == 14)
		shutdown(p->fd, SHUT_WR);
	else
		peer_close(p);
	for (unsigned i = 0; i < PEERS_MAX; i++)
		if (peers[i].fd >= 0 && !peers[i].layer.ops)
			fuzz_drain(peers[i].fd);
	uv_run(&admission.loop, UV_RUN_NOWAIT);
}

/* ---- */

static void remove_files(void)
{
	unlink(cert);
	unlink(key);
	unlink(tokens);
	rmdir(folder);
}

static void files_make(void)
{
	uint8_t pin[OBT_TLS_PIN_BYTES];
	struct obt_tokens list = { 0 };
	struct ob_cause cause = { .text = "no folder" };

	if (mkdtemp(folder)) {
		snprintf(cert, sizeof cert, "%s/cert", folder);
		snprintf(key, sizeof key, "%s/key", folder);
		snprintf(tokens, sizeof tokens, "%s/tokens", folder);
		atexit(remove_files);
	}
	if (!cert[0] || obt_tls_make_certificate(cert, key, "127.0.0.1", 10, pin, &cause) ||
		obt_tokens_add(&list, "fuzz", OBT_SCOPE_USE, 0, NULL, token) ||
		obt_tokens_write(tokens, &list, &cause) ||
		!(admission.tls = obt_tls_server_new(cert, key, NULL, &cause))) {
		fprintf(stderr, "%s\n", cause.text);
		exit(1);
	}
	obt_tokens_fini(&list);
}

/* A good ticket of a balancer that is known. */
static void ticket_make(void)
{
	const struct obp_ticket good = { .server = "s",
		.incarnation = 1,
		.tenant = "t",
		.expires = UINT64_MAX,
		.n_devices = 1 };
	struct obt_sign_key *signer = obt_sign_key_new(NULL);
	uint8_t public[OBT_SIGN_KEY_BYTES];
	struct ob_buf body;

	pool = (struct obs_pool_page){ .server = "s", .incarnation = 1 };
	ob_buf_init(&body, OBP_TICKET_BODY_MAX);
	if (!signer || !obp_ticket_encode(&good, &body) ||
		!obt_sign_seal(signer, body.data, body.size, ticket))
		exit(1);
	ticket_size = (uint32_t)(body.size + OBT_SIGN_OVERHEAD);
	obt_sign_key_public(signer, public);
	obs_pool_page_add(&pool, public, 0);
	obt_sign_key_free(signer);
	ob_buf_fini(&body);
}

static void start(void)
{
	char *argv[] = { "outboard-server", "--admission", "--hello-timeout", "2", "--driver",
		"null", "--tokens", tokens, "--count-local", "--listen", "tcp://127.0.0.1:0",
		NULL };
	int table = -1;

	signal(SIGPIPE, SIG_IGN);
	ob_log_set_level(OB_LOG_DEBUG); /* log lines are formatted and dropped */
	ob_log_set_fd(-1);
	channel = fuzz_child_channel(); /* first, so that no other descriptor has its number */
	files_make();
	if (obs_options_parse(&options, (int)ob_count(argv) - 1, argv) ||
		uv_loop_init(&admission.loop) != 0 || !(routes = obs_routes_new(&table))) {
		fprintf(stderr, "admission does not start\n");
		exit(1);
	}
	/* Lower than an operator can set it, so that peers evict each other. */
	options.connections = 5;
	options.address_connections = 4;
	options.address_rate = 1000000;
	admission.options = &options;
	admission.routes = routes;
	admission.pool = &pool;
	ticket_make();
	listener = fuzz_listen(&here);
	for (unsigned i = 0; i < PEERS_MAX; i++)
		peers[i].fd = -1;
}

static void finish(void)
{
	for (unsigned i = 0; i < PEERS_MAX; i++)
		peer_close(&peers[i]);
	/* The first pass ends silent peers, the second those that were sent a refusal. */
	for (int i = 0; i < TURNS_MAX && (i < 2 || uv_loop_alive(&admission.loop)); i++) {
		obs_caller_sweep(&admission, OB_NEVER);
		supervisor_reads();
		uv_run(&admission.loop, UV_RUN_NOWAIT);
	}
	supervisor_reads();
	if (admission.n_callers || admission.newest || admission.oldest ||
		uv_loop_alive(&admission.loop))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned before;

	if (channel < 0)
		start();
	fuzz_input_start(data, ob_min(size, (size_t)8192));
	before = fuzz_descriptors();
	for (unsigned i = 0; i < ROUTES; i++)
		session_tell(i, true);
	pool.on = fuzz_take(2);
	pool.direct = fuzz_take(4) == 3;
	for (unsigned i = 0; i < STEPS_MAX && !fuzz_used_up(); i++)
		step();
	finish();
	if (fuzz_descriptors() != before)
		abort();
	return 0;
}
