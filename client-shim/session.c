/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/session.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "base/check.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "client-shim/log.h"
#include "protocol/obc_calls.h"
#include "protocol/conn.h"
#include "transport/message.h"
#include "transport/stream.h"
#include "transport/tls.h"
#include "transport/token.h"

#define RANGE_BYTES (1ull << 40)          /* addresses asked for: room for every device's memory several times over */
#define RANGE_SMALL_BYTES (64ull << 30)   /* where the kernel chooses (sanitizers own the fixed places) */
#define TIMEOUT_DEFAULT_S 5u
#define DEAD_DEFAULT_S 20u
#define BYE_NS (2 * OB_SECOND)
#define PING_NS (5 * OB_SECOND)
#define FD_MIN 500                        /* our descriptors live above those that programs close by habit */

static const uint64_t range_places[] = { 0x200000000000ull, 0x300000000000ull, 0x100000000000ull };

static struct session {
	bool started;
	struct obt_url url;
	char url_text[OBT_URL_MAX + 1];
	struct obp_message welcome;
	uint64_t timeout_ns, dead_ns;
	char tls_why[OBT_TLS_WHY_MAX];
	unsigned codec_wish;
	pthread_t thread;
	bool thread_running;
	_Atomic bool stopping;
	_Atomic int control_fd;
} session = { .control_fd = -1 };

static void (*callback_fn)(uint64_t id, CUresult status);

bool obc_session_started(void)
{
	return session.started;
}

void obc_session_on_callback(void (*fn)(uint64_t id, CUresult status))
{
	callback_fn = fn;
}

static uint64_t seconds_from_env(const char *name, uint64_t standard)
{
	const char *text = getenv(name);
	uint64_t value;

	if (!text || !*text)
		return standard * OB_SECOND;
	if (!ob_text_parse_number(text, 1, 86400, &value)) {
		ob_warn("%s: '%s' is not a number of seconds from 1 to 86400; using %u", name, text, (unsigned)standard);
		value = standard;
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
	if (place && p != (void *)place) { /* a kernel without MAP_FIXED_NOREPLACE takes it for a hint */
		munmap(p, size);
		return false;
	}
	*ret = (struct obp_range){ (uint64_t)p, size };
	return true;
}

static void ranges_propose(struct obp_hello *hello)
{
	for (size_t i = 0; i < ob_count(range_places); i++)
		if (range_reserve(range_places[i], RANGE_BYTES, &hello->ranges[hello->n_ranges]))
			hello->n_ranges++;
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
	hello->codec = obp_codec_wish_read(&hello->codecs);
	session.codec_wish = hello->codec;
	ranges_propose(hello);
}

/* The server has none of our places: take its own, if nothing of ours lies there. */
static enum ob_err range_settle(struct obt_stream *stream, struct obp_welcome *welcome, uint64_t deadline)
{
	struct obp_message answer = { .type = OBP_MSG_RANGE };
	struct obp_range taken;

	if (!welcome->vmm || welcome->range_ok)
		return OB_ERR_NONE;
	answer.value = welcome->range.size && range_reserve(welcome->range.base, welcome->range.size, &taken);
	if (!answer.value)
		welcome->vmm = false;
	return obt_message_send(stream, &answer, NULL, 0, deadline);
}

static enum ob_err say_hello(struct obt_stream *stream, uint64_t deadline)
{
	const struct obp_preface preface = { .magic = OBP_MAGIC, .version = OBP_VERSION, .intent = OBP_INTENT_NEW };
	struct obp_welcome *welcome = &session.welcome.welcome;
	OB_CLEANUP(ob_freep) struct obp_message *hello = calloc(1, sizeof *hello);
	enum ob_err err;

	if (!hello)
		return OB_ERR_NO_MEMORY;
	hello_fill(hello);
	if (!obt_token_show(stream, hello->hello.token))
		return OB_ERR_DENIED;
	err = obt_message_send(stream, hello, &preface, sizeof preface, deadline);
	if (!err || err == OB_ERR_CLOSED) /* a server that refuses may have closed already; its reason can still be read */
		err = obt_message_receive(stream, &session.welcome, deadline);
	if (!err && session.welcome.type == OBP_MSG_REFUSED)
		err = OB_ERR_REFUSED;
	else if (!err && (session.welcome.type != OBP_MSG_WELCOME || welcome->route == 0))
		err = OB_ERR_PROTOCOL;
	ranges_drop(&hello->hello, !err && welcome->range_ok ? &welcome->range : NULL);
	return err ? err : range_settle(stream, welcome, deadline);
}

/* One line: what happened, with which server, and what to do. */
static void explain(enum ob_err err, int saved)
{
	const char *url = session.url_text;

	switch (err) {
	case OB_ERR_CONNECT:
		ob_error("cannot reach %s: %s. Start one there with 'outboard-server --listen URL', or name another with --server or OUTBOARD_SERVER",
		         url, strerror(saved));
		break;
	case OB_ERR_TIMEOUT:
		ob_error("%s did not answer within %u s. Is it an Outboard server, and is it alive? 'outboard check --server %s' looks; "
		         "OUTBOARD_TIMEOUT sets the seconds",
		         url, (unsigned)(session.timeout_ns / OB_SECOND), url);
		break;
	case OB_ERR_MAGIC:
	case OB_ERR_CLOSED:
		ob_error("%s is not an Outboard server, or closed the connection: %s. Check host and port", url, ob_err_text(err));
		break;
	case OB_ERR_VERSION:
		ob_error("%s speaks another protocol version than this client (%u). Install the same release on both sides", url, OBP_VERSION);
		break;
	case OB_ERR_TLS:
	case OB_ERR_CERTIFICATE:
		ob_error("no TLS connection to %s: %s", url, session.tls_why[0] ? session.tls_why : ob_err_text(err));
		break;
	case OB_ERR_DENIED:
		ob_error("%s is another machine and not tls://: OUTBOARD_TOKEN is not sent there in clear", url);
		break;
	case OB_ERR_REFUSED:
		ob_error("%s refused the session: %s", url, session.welcome.text);
		break;
	default:
		ob_error("no session with %s: %s", url, ob_err_text(err));
		break;
	}
}

/* ---- the control connection ---- */

struct control {
	struct obt_stream stream;
	struct obp_conn conn;
	uint64_t heard, pinged;       /* ns */
};

static bool control_send(struct control *control, enum obp_message_type type, uint64_t value)
{
	struct obp_message *message = calloc(1, sizeof *message);
	enum ob_err err = OB_ERR_NO_MEMORY;

	if (message) {
		message->type = type;
		message->value = value;
		memcpy(message->secret, session.welcome.welcome.secret, sizeof message->secret);
		err = obt_message_send(&control->stream, message, NULL, 0, ob_clock_ns() + session.dead_ns);
	}
	free(message);
	return err == OB_ERR_NONE;
}

static bool control_handle(struct control *control, const struct obp_item *item)
{
	OB_CLEANUP(ob_freep) struct obp_message *message = malloc(sizeof *message);
	bool ok = true;

	if (!message || obp_message_decode(item->body, item->size, message))
		return false;
	switch (message->type) {
	case OBP_MSG_PING:
		ok = control_send(control, OBP_MSG_PONG, message->value);
		break;
	case OBP_MSG_CALLBACK:
		if (callback_fn)
			callback_fn(message->value, (CUresult)message->code);
		ok = control_send(control, OBP_MSG_CALLBACK_DONE, message->value);
		break;
	case OBP_MSG_FATAL:
	case OBP_MSG_REFUSED:
		ob_error("the server ended the session: %s", message->text);
		ok = false;
		break;
	default:
		break;
	}
	obp_message_fini(message);
	return ok;
}

/* What has come; false: the connection is of no more use. */
static bool control_read(struct control *control)
{
	struct obp_item item;
	enum obp_event event;
	ssize_t done;
	size_t size;
	void *data;

	obp_conn_space(&control->conn, &data, &size);
	done = control->stream.ops->recv(&control->stream, data, size, false);
	if (done == 0 || (done < 0 && errno != EAGAIN))
		return false;
	if (done > 0) {
		obp_conn_fed(&control->conn, (size_t)done);
		control->heard = ob_clock_ns();
	}
	while ((event = obp_conn_next(&control->conn, &item)) != OBP_NEED)
		if (event != OBP_CONTROL || !control_handle(control, &item))
			return false;
	return true;
}

/* While somebody waits for a reply, silence is measured: a server that is gone without a word must not hold the program for ever. */
static bool control_watch(struct control *control)
{
	uint64_t now = ob_clock_ns(), ping_ns = ob_min(PING_NS, session.dead_ns / 4);

	if (!obc_log_waiting()) {
		control->heard = now;
		return true;
	}
	if (now - control->heard > session.dead_ns) {
		obc_log_fail(OB_ERR_TIMEOUT);
		return false;
	}
	if (now - control->heard > ping_ns && now - control->pinged > ping_ns) {
		control->pinged = now;
		return control_send(control, OBP_MSG_PING, now);
	}
	return true;
}

static bool control_join(struct control *control, const struct obp_preface *preface, uint64_t deadline)
{
	OB_CLEANUP(ob_freep) struct obp_message *message = calloc(1, sizeof *message);

	if (!message)
		return false;
	message->type = OBP_MSG_JOIN;
	memcpy(message->secret, session.welcome.welcome.secret, sizeof message->secret);
	return obt_message_send(&control->stream, message, preface, sizeof *preface, deadline) == OB_ERR_NONE;
}

static bool control_open(struct control *control)
{
	struct obp_preface preface = { .magic = OBP_MAGIC, .version = OBP_VERSION, .intent = OBP_INTENT_JOIN, .route = session.welcome.welcome.route };
	uint64_t deadline = ob_clock_ns() + session.timeout_ns;
	int fd;

	if (obt_stream_connect(&session.url, deadline, &control->stream))
		return false;
	fd = fcntl(control->stream.fd, F_DUPFD_CLOEXEC, FD_MIN);
	if (fd >= 0) {
		close(control->stream.fd);
		control->stream.fd = fd;
	}
	atomic_store(&session.control_fd, control->stream.fd);
	control->heard = control->pinged = ob_clock_ns();
	return obp_conn_init(&control->conn, OBP_ACCEPT_CONTROL) == OB_ERR_NONE &&
	       control_join(control, &preface, deadline);
}

static void *control_main(void *unused)
{
	static struct control control;
	bool ok = control_open(&control);

	(void)unused;
	while (ok && !atomic_load(&session.stopping)) {
		struct pollfd pfd = { .fd = control.stream.fd, .events = POLLIN };
		int n = poll(&pfd, 1, (int)ob_min(session.dead_ns / 4 / OB_MS, (uint64_t)1000));

		if (n > 0)
			do
				ok = control_read(&control);
			while (ok && obt_stream_pending(&control.stream));
		if (ok)
			ok = control_watch(&control);
	}
	if (!ok && !atomic_load(&session.stopping))
		obc_log_fail(OB_ERR_CLOSED);
	return NULL;
}

static bool control_start(void)
{
	sigset_t all, old;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	session.thread_running = pthread_create(&session.thread, NULL, control_main, NULL) == 0;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return session.thread_running;
}

/* ---- the session ---- */

static enum ob_err url_find(void)
{
	const char *text = getenv("OUTBOARD_SERVER"), *why = NULL;
	enum ob_err err;

	if (!text || !*text)
		text = OBC_DEFAULT_SERVER;
	err = obt_url_parse(text, &session.url, &why);
	if (err) {
		ob_error("OUTBOARD_SERVER='%.200s': %s", text, why);
		return err;
	}
	strncpy(session.url_text, text, sizeof session.url_text - 1);
	return OB_ERR_NONE;
}

static void why_keep(const struct obt_stream *stream)
{
	const char *why = obt_stream_why(stream);

	if (why)
		snprintf(session.tls_why, sizeof session.tls_why, "%s", why);
}

enum ob_err obc_session_start(const struct obp_welcome **ret_welcome)
{
	struct obt_stream stream = { .fd = -1 };
	uint64_t began = ob_clock_ns(), deadline;
	enum ob_err err = url_find();
	int fd;

	if (err)
		return err;
	session.timeout_ns = seconds_from_env("OUTBOARD_TIMEOUT", TIMEOUT_DEFAULT_S);
	session.dead_ns = seconds_from_env("OUTBOARD_DEAD", DEAD_DEFAULT_S);
	deadline = began + session.timeout_ns;
	err = obt_stream_connect(&session.url, deadline, &stream);
	if (err) {
		why_keep(&stream);
		explain(err, errno);
		obt_stream_close(&stream);
		return err;
	}
	fd = fcntl(stream.fd, F_DUPFD_CLOEXEC, FD_MIN);
	if (fd >= 0) {
		close(stream.fd);
		stream.fd = fd;
	}
	err = say_hello(&stream, deadline);
	why_keep(&stream);
	if (!err)
		err = obc_log_open(&stream, session.welcome.welcome.codecs & obp_codecs_own(), session.codec_wish);
	if (err) {
		explain(err, errno);
		obt_stream_close(&stream);
		return err;
	}
	obc_log_note_trip(ob_clock_ns() - began);
	session.started = true;
	if (!control_start()) {
		obc_log_fail(OB_ERR_NO_MEMORY);
		return OB_ERR_NO_MEMORY;
	}
	*ret_welcome = &session.welcome.welcome;
	return OB_ERR_NONE;
}

void obc_session_stop(void)
{
	int fd;

	if (!session.started || atomic_exchange(&session.stopping, true))
		return;
	if (obc_log_error() == CUDA_SUCCESS) {
		obc_log_set_deadline(ob_clock_ns() + BYE_NS);
		obc_call_op_bye();
	}
	fd = atomic_load(&session.control_fd);
	if (fd >= 0)
		shutdown(fd, SHUT_RDWR); /* wakes the control thread */
	/* A host function may still run on it: it is given no longer than the goodbye was. */
	if (session.thread_running) {
		struct timespec until;

		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += 2;
		pthread_timedjoin_np(session.thread, NULL, &until);
	}
	obc_log_close();
}

void obc_session_forget(void)
{
	int fd = atomic_exchange(&session.control_fd, -1);

	if (fd >= 0)
		close(fd);
	obc_log_forget();
	session.started = false;
	session.thread_running = false;
	atomic_store(&session.stopping, false);
}
