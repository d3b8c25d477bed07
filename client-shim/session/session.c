/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/session/session.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "base/check.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/opt.h"
#include "base/text.h"
#include "client-shim/session/background.h"
#include "client-shim/session/cache.h"
#include "client-shim/session/control.h"
#include "client-shim/session/inside.h"
#include "client-shim/session/link.h"
#include "client-shim/session/log.h"
#include "client-shim/session/pass.h"
#include "client-shim/session/pool.h"
#include "client-shim/session/resume.h"
#include "client-shim/session/ring.h"
#include "client-shim/session/server.h"
#include "client-shim/session/stripe.h"
#include "client-shim/session/request.h"
#include "loadbalancer/ask.h"
#include "protocol/obc_calls.h"
#include "protocol/conn.h"
#include "protocol/welcome.h"
#include "transport/connect.h"
#include "transport/failure.h"
#include "transport/message.h"
#include "transport/shm.h"
#include "transport/stream.h"
#include "transport/tls.h"
#include "transport/token.h"

/* the kernel chooses the address, because sanitizers use the fixed ones */
#define RANGE_SMALL_BYTES (64ull << 30)
#define TIMEOUT_DEFAULT_S 5u
/* A server lets a connection wait for a worker for 30 s. Then it says so. */
#define HELLO_DEFAULT_S   35u
#define DEAD_DEFAULT_S    20u
#define SECONDS_MAX       86400u
#define BYE_NS            (2 * OB_SECOND)

static const struct obp_range range_places[] = { OBC_RANGE_PLACES };
/* Of server 1; each further server proposes places that are one size higher. */
static const struct obp_range further_places[] = { OBC_RANGE_FURTHER };

struct session_state {
	bool started;
	struct obt_url url;
	char url_text[OBT_URL_MAX + 1];
	struct obp_message welcome;
	uint64_t timeout_ns, hello_ns, dead_ns, grace_ns, ring_size;
	struct ob_cause cause; /* of the last attempt to start */
	unsigned codec_request;
	_Atomic bool stopping;
};

static OBC_PER_SERVER struct session_state session_first;
#define session OBC_HERE(session_first)

bool obc_session_started(void)
{
	return session.started;
}

void obc_session_on_callback(void (*fn)(uint64_t id, CUresult status))
{
	obc_control_on_callback(fn);
}

static uint64_t seconds_from_env(const char *name, uint64_t min, uint64_t default_s)
{
	const char *text = getenv(name);
	uint64_t value;

	if (!text || !*text)
		return default_s * OB_SECOND;
	if (!ob_text_parse_number(text, min, SECONDS_MAX, &value)) {
		ob_warn("%s: '%s' is not a number of seconds from %u to %u; using %u", name, text,
			(unsigned)min, SECONDS_MAX, (unsigned)default_s);
		value = default_s;
	}
	return value * OB_SECOND;
}

/* ---- addresses ---- */

static bool range_reserve(uint64_t place, uint64_t size, struct obp_range *ret)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (place ? MAP_FIXED_NOREPLACE : 0);
	void *p = mmap((void *)place, size, PROT_NONE, flags, -1, 0);

	if (p == MAP_FAILED)
		return false;
	/* a kernel without MAP_FIXED_NOREPLACE treats the address as a hint */
	if (place && p != (void *)place) {
		munmap(p, size);
		return false;
	}
	*ret = (struct obp_range){ (uint64_t)p, size };
	return true;
}

#ifdef __SANITIZE_THREAD__
/* the sanitizer uses these addresses; newer versions of it end a process that maps them */
#define RANGES_FIXED false
#else
#define RANGES_FIXED true
#endif

static void ranges_propose(struct obp_hello *hello)
{
	uint32_t server = obc_server_number();
	const struct obp_range *places = server ? further_places : range_places;
	size_t n = server ? ob_count(further_places) : ob_count(range_places);

	for (size_t i = 0; RANGES_FIXED && i < n; i++) {
		uint64_t above = server ? (server - 1) * places[i].size : 0;

		if (range_reserve(places[i].base + above, places[i].size,
			    &hello->ranges[hello->n_ranges]))
			hello->n_ranges++;
	}
	if (range_reserve(0, RANGE_SMALL_BYTES, &hello->ranges[hello->n_ranges]))
		hello->n_ranges++;
}

static void ranges_drop(const struct obp_hello *hello, const struct obp_range *keep)
{
	for (uint32_t i = 0; i < hello->n_ranges; i++)
		if (!keep || hello->ranges[i].base != keep->base)
			munmap((void *)hello->ranges[i].base, hello->ranges[i].size);
}

/* ---- the hello ---- */

static void hello_fill(struct obp_message *message)
{
	struct obp_hello *hello = &message->hello;
	const char *name = program_invocation_short_name;

	message->type = OBP_MSG_HELLO;
	strncpy(hello->version, OB_VERSION, sizeof hello->version - 1);
	strncpy(hello->program, name ? name : "?", sizeof hello->program - 1);
	hello->pid = (uint64_t)getpid();
	hello->codecs = obp_codecs_own();
	hello->codec = obp_codec_request_read(&hello->codecs);
	session.codec_request = hello->codec;
	hello->grace_s = (uint32_t)(session.grace_ns / OB_SECOND);
	hello->ring = session.ring_size;
	hello->link_rate = obc_link_recalled()->rate_in;
	obc_request_fill(hello);
	ranges_propose(hello);
}

/*
 * The server could reserve none of the proposed ranges: uses the server's range if it is free here.
 */
static enum ob_err range_settle(
	struct obt_stream *stream, struct obp_welcome *welcome, uint64_t deadline)
{
	struct obp_message answer = { .type = OBP_MSG_RANGE };
	struct obp_range taken;

	if (!welcome->vmm || welcome->range_ok)
		return OB_ERR_NONE;
	answer.value = welcome->range.size &&
		range_reserve(welcome->range.base, welcome->range.size, &taken);
	if (!answer.value) {
		welcome->vmm = false;
		for (uint32_t i = 0; i < welcome->n_devices; i++)
			welcome->devices[i].range = (struct obp_range){ 0 };
	}
	return obt_message_send(stream, &answer, NULL, 0, deadline);
}

static enum ob_err hello_exchange(struct obt_stream *stream, uint64_t deadline)
{
	const struct obp_preface preface = {
		.magic = OBP_MAGIC, .version = OBP_VERSION, .intent = OBP_INTENT_NEW
	};
	struct obp_welcome *welcome = &session.welcome.welcome;
	OB_CLEANUP(ob_freep) struct obp_message *hello = calloc(1, sizeof *hello);
	enum ob_err err = OB_ERR_NONE;

	if (!hello)
		return OB_ERR_NO_MEMORY;
	hello_fill(hello);
	if (session.url.shm && ob_opt_on(OB_OPT_SHM))
		err = obt_shm_offer(stream, &session.cause);
	if (err)
		return err;
	hello->shm = obt_shm_offered(stream);
	err = obc_pass_show(stream, &session.url, &hello->hello, &session.cause);
	/* a ticket replaces the token, which a server of a pool need not learn */
	if (!err && !hello->hello.ticket_size)
		err = obt_token_show(stream, hello->hello.token);
	if (err)
		return err;
	err = obt_message_send(stream, hello, &preface, sizeof preface, deadline);
	/*
	 * a server that refuses may have closed the connection already; its reason can still be
	 * read
	 */
	if (!err || err == OB_ERR_CLOSED)
		err = obt_message_receive(stream, &session.welcome, deadline);
	if (!err && session.welcome.type == OBP_MSG_REFUSED)
		err = ob_cause_set(&session.cause, OB_ERR_REFUSED, "%s", session.welcome.text);
	if (!err)
		err = obp_welcome_check(hello, &session.welcome, &session.cause);
	obt_shm_settle(stream, err ? 0 : session.welcome.shm);
	if (!err && hello->shm && !obt_shm_on(stream))
		ob_info("%s offers no shared memory; using the socket", session.url_text);
	ranges_drop(&hello->hello, !err && welcome->range_ok ? &welcome->range : NULL);
	return err ? err : range_settle(stream, welcome, deadline);
}

/* Logs one line: session.cause, the server and the remedy. */
static void failure_log(bool connected)
{
	uint64_t limit = connected ? session.hello_ns : session.timeout_ns;
	const struct obt_failure failure = { .cause = &session.cause,
		.connected = connected,
		.timeout_s = (unsigned)(limit / OB_SECOND),
		.url = &session.url,
		.text = session.url_text };
	char text[OBT_FAILURE_TEXT];

	obt_failure_print(&failure, text, sizeof text);
	ob_error("%s", text);
}

/* ---- the session ---- */

/* list: the servers that remain to be tried. */
static enum ob_err url_find(const char *list)
{
	const char *text = list;
	struct ob_cause cause;
	enum ob_err err;

	session.url_text[0] = '\0';
	if (strchr(text, ',')) {
		err = obc_request_server(text, session.timeout_ns, session.url_text);
		if (err)
			return err;
		text = session.url_text;
	}
	err = obt_url_parse(text, &session.url, &cause);
	if (err) {
		ob_error("OUTBOARD_SERVER='%.200s': %s", text, cause.text);
		return err;
	}
	if (text != session.url_text)
		snprintf(session.url_text, sizeof session.url_text, "%s", text);
	return OB_ERR_NONE;
}

/* Completes session.cause for the error of an attempt on this stream. */
static void cause_settle(const struct obt_stream *stream, enum ob_err err)
{
	const struct ob_cause *known = obt_stream_cause(stream);

	if (err == OB_ERR_REFUSED || session.cause.code == err)
		return;
	session.cause = known ? *known : (struct ob_cause){ .code = err };
	session.cause.code = err;
}

/*
 * Both sides must keep the session after a break, so the shorter of the two grace periods applies.
 */
static void resume_settle(void)
{
	const struct obp_welcome *welcome = &session.welcome.welcome;
	struct obc_resume_terms terms = {
		.url = session.url, .route = welcome->route, .timeout_ns = session.timeout_ns
	};

	session.grace_ns = ob_min(session.grace_ns, welcome->grace_s * OB_SECOND);
	terms.grace_ns = session.grace_ns;
	memcpy(terms.secret, welcome->secret, sizeof terms.secret);
	obc_resume_init(&terms);
}

/* Connects and sends the hello. Logs an error. */
static enum ob_err connect_hello(struct obt_stream *stream)
{
	/* the choice among several servers had its own time limit */
	uint64_t deadline = ob_clock_ns() + session.timeout_ns;
	enum ob_err err = obt_stream_connect(&session.url, deadline, stream, &session.cause);
	bool connected = !err;

	if (!err) {
		stream->fd = ob_fd_raise(stream->fd);
		obc_link_begin(&session.url, stream);
		err = hello_exchange(stream, ob_clock_ns() + session.hello_ns);
	}
	if (err) {
		cause_settle(stream, err);
		failure_log(connected);
		obt_stream_close(stream);
		stream->fd = -1;
	}
	return err;
}

/* Before the next attempt. */
static void attempt_forget(void)
{
	obp_message_fini(&session.welcome);
	memset(&session.welcome, 0, sizeof session.welcome);
	session.cause.code = OB_ERR_NONE;
}

/*
 * Between the report of a server's load and the hello another client may take the last place, or
 * the server may stop. Then the next best server of the list is tried. An error that every server
 * would give is final.
 */
static bool next_best(char *list, enum ob_err err)
{
	if (err == OB_ERR_DENIED || err == OB_ERR_NO_MEMORY || err == OB_ERR_URL)
		return false;
	obl_list_drop(list, session.url_text);
	if (!*list)
		return false;
	ob_warn("trying the next best server of OUTBOARD_SERVER");
	attempt_forget();
	return true;
}

static enum ob_err server_find(const char *servers, struct obt_stream *stream)
{
	OB_CLEANUP(ob_freep) char *list = strdup(servers);
	enum ob_err err;

	if (!list)
		return OB_ERR_NO_MEMORY;
	do {
		err = url_find(list);
		if (err)
			return err;
		err = connect_hello(stream);
	} while (err && next_best(list, err));
	return err;
}

enum ob_err obc_session_start(const char *servers, const struct obp_welcome **ret_welcome)
{
	struct obt_stream stream = { .fd = -1 };
	const char *set = getenv("OUTBOARD_TIMEOUT");
	uint64_t began = ob_clock_ns();
	enum ob_err err;

	if (!obc_ring_size_read(&session.ring_size))
		return OB_ERR_ARGUMENT;
	session.timeout_ns = seconds_from_env("OUTBOARD_TIMEOUT", 1, TIMEOUT_DEFAULT_S);
	session.hello_ns = set && *set ? session.timeout_ns : HELLO_DEFAULT_S * OB_SECOND;
	session.dead_ns = seconds_from_env("OUTBOARD_DEAD", 1, DEAD_DEFAULT_S);
	session.grace_ns = ob_opt_on(OB_OPT_RESUME)
		? seconds_from_env("OUTBOARD_GRACE", 0, OBP_GRACE_DEFAULT_S)
		: 0;
	err = server_find(servers, &stream);
	if (err == OB_ERR_REFUSED && obc_pool_again(session.cause.text))
		attempt_forget();
	if (err)
		return err;
	resume_settle();
	obc_stripe_init(&session.url, &stream, session.welcome.welcome.stripes,
		session.welcome.welcome.codecs & obp_codecs_own(), session.codec_request,
		session.timeout_ns);
	obc_stripe_recall(obc_link_recalled());
	err = obc_log_open(&stream, session.welcome.welcome.codecs & obp_codecs_own(),
		session.codec_request, session.grace_ns > 0, session.ring_size,
		obc_link_recalled()->rate_out);
	if (err) {
		session.cause = (struct ob_cause){ .code = err };
		failure_log(true);
		obt_stream_close(&stream);
		return err;
	}
	obc_log_note_trip(ob_clock_ns() - began);
	session.started = true;
	if (obc_servers_count() > 1)
		obc_server_set_name(session.url_text);
	if (!obc_control_start(&session.url, session.timeout_ns, session.dead_ns)) {
		obc_log_fail(OB_ERR_NO_MEMORY);
		return OB_ERR_NO_MEMORY;
	}
	*ret_welcome = &session.welcome.welcome;
	return OB_ERR_NONE;
}

/* Returns true after the server's reply; *ret_rate: bytes/s from the server, 0: not measured. */
static bool goodbye(uint64_t *ret_rate)
{
	*ret_rate = 0;
	if (obc_link_kept() && obc_lines_known >= OBP_LINE_bye_link)
		return obc_call_op_bye_link(ret_rate) == CUDA_SUCCESS;
	return obc_call_op_bye() == CUDA_SUCCESS;
}

/* No other thread of the library measures any more. */
static void link_keep(uint64_t rate_in)
{
	struct obt_link_memory learned = { .rate_out = obc_log_rate_learned(), .rate_in = rate_in };
	struct obp_quality quality;

	if (!obc_link_kept())
		return;
	obc_cache_learned(&learned);
	obc_stripe_learned(&learned);
	obc_control_quality(&quality);
	/* The round trip alone, which every session measures, is not worth writing a file. */
	if (learned.rate_out || learned.rate_in || learned.cache_link || learned.log_upload ||
		learned.log_download)
		learned.round_trip = quality.min_ns;
	obc_link_end(&learned);
}

void obc_session_stop(void)
{
	uint64_t rate_in = 0, deadline;
	bool ended = false;

	if (!session.started || atomic_exchange(&session.stopping, true))
		return;
	/*
	 * exit() was called in a signal handler that interrupted a call: this thread may hold a
	 * lock that the goodbye needs.
	 */
	if (obc_inside) {
		obc_log_set_deadline(ob_clock_ns());
		obc_control_give_up();
		return;
	}
	if (obc_log_alive() == CUDA_SUCCESS) {
		deadline = ob_clock_ns() + BYE_NS;
		obc_log_set_deadline(deadline);
		obc_background_abandon(deadline);
		ended = goodbye(&rate_in);
		obc_background_stop();
	}
	obc_resume_stop();
	obc_stripe_stop();
	obc_control_stop();
	if (ended)
		link_keep(rate_in);
	obc_log_close();
}

void obc_session_forget(void)
{
	obc_control_forget();
	obc_background_forget();
	obc_log_forget();
	obc_cache_forget();
	obc_resume_forget();
	obc_stripe_forget();
	obc_link_forget();
	session.started = false;
	atomic_store(&session.stopping, false);
}
