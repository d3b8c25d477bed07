/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/registry/watch.h"

#include <inttypes.h>

#include "loadbalancer/registry/alloc.h"
#include "loadbalancer/registry/etcd_error.h"
#include "loadbalancer/registry/pager.h"

#define BURST_MAX (16u << 20) /* bytes that libcurl may pass at a time */

static void set_state(struct obl_watch *watch, enum obl_watch_state state, uint64_t now)
{
	watch->state = state;
	watch->since = now;
	if (state == OBL_WATCH_OPEN)
		watch->down_since = 0;
	else if (!watch->down_since)
		watch->down_since = now;
}

/* Ends the stream; the tick opens another one. */
static void stop(struct obl_watch *watch)
{
	if (watch->stream)
		obl_http_cancel(watch->stream);
	watch->stream = NULL;
	if (watch->partial)
		watch->next = 0;
	watch->partial = false;
	ob_buf_fini(&watch->line);
	watch->heard = 0;
	set_state(watch, OBL_WATCH_IDLE, ob_clock_ns());
}

/* The stream says what cannot be: it is not continued. */
static void distrust(struct obl_watch *watch, const char *what)
{
	ob_warn("the watch at etcd %s is not continued, all keys are read again: %s",
		watch->calls->endpoints.list[watch->endpoint].url, what);
	watch->next = 0;
	stop(watch);
}

static void set_next(struct obl_watch *watch, uint64_t next)
{
	watch->next = next;
	watch->next_ns = ob_clock_ns();
}

/* ---- reading all keys ---- */

static void on_begin(void *user)
{
	struct obl_watch *watch = user;

	watch->synced = false;
	watch->reset(watch->user);
}

static void on_kv(void *user, struct obl_kv *kv)
{
	struct obl_watch *watch = user;

	watch->changed(watch->user, kv->key, kv);
	obl_kv_fini(kv);
}

static void on_read(void *user, enum ob_err err, const struct ob_cause *cause, uint64_t revision,
	uint64_t started_ns)
{
	struct obl_watch *watch = user;

	(void)started_ns;
	set_state(watch, OBL_WATCH_IDLE, ob_clock_ns());
	if (err != OB_ERR_NONE) {
		if (err == OB_ERR_PROTOCOL || err == OB_ERR_LIMIT)
			ob_warn("%s", cause->text);
		return;
	}
	set_next(watch, revision + 1);
	watch->synced = true;
	watch->done(watch->user, revision);
}

static void read_all(struct obl_watch *watch, uint64_t now)
{
	struct obl_pager_user user = { watch, on_begin, on_kv, on_read };

	set_state(watch, OBL_WATCH_READING, now);
	obl_pager_start(watch->calls, watch->prefix, "", &user);
}

/* ---- messages of the stream ---- */

/* *ret_last: the revision of the event. NULL: it is valid. */
static const char *take_event(struct obl_watch *watch, const json_t *event, uint64_t *ret_last)
{
	const json_t *member = json_object_get(event, "type"),
		     *json_kv = json_object_get(event, "kv");
	const char *type = json_string_value(member);
	struct obl_kv kv = { 0 };
	enum ob_err err;

	if (!obl_wire_number(json_kv, "mod_revision", ret_last) || *ret_last < watch->next)
		return "a change is older than the ones before";
	if (member && !type)
		return "a change has no type";
	err = obl_wire_kv(json_kv, watch->prefix, &kv);
	if (err == OB_ERR_NOT_FOUND)
		return NULL;
	if (err != OB_ERR_NONE)
		return "a change is damaged";
	if (type && strcmp(type, "DELETE") == 0)
		watch->changed(watch->user, kv.key, NULL);
	else
		watch->changed(watch->user, kv.key, &kv);
	obl_kv_fini(&kv);
	return NULL;
}

static const char *take_events(struct obl_watch *watch, const json_t *result, const json_t *events)
{
	uint64_t before = 0, last = 0;
	const char *wrong;
	size_t i;

	for (i = 0; i < json_array_size(events); i++) {
		wrong = take_event(watch, json_array_get(events, i), &last);
		if (!wrong && last < before)
			wrong = "the changes are not in order";
		if (wrong)
			return wrong;
		before = last;
		if (watch->state != OBL_WATCH_OPEN)
			return NULL; /* the user closed the registry */
	}
	watch->partial = json_is_true(json_object_get(result, "fragment"));
	if (!watch->partial)
		set_next(watch, last + 1);
	return NULL;
}

static void take_cancel(struct obl_watch *watch, const json_t *result)
{
	const char *reason = json_string_value(json_object_get(result, "cancel_reason"));
	uint64_t compacted = 0;

	if (!reason)
		reason = "no reason is given";
	if (obl_login_refused(&watch->calls->login, -1, reason))
		obl_login_forget(&watch->calls->login);
	if (!obl_wire_number(result, "compact_revision", &compacted) || compacted) {
		ob_info("etcd has compacted the changes since revision %" PRIu64
			": all keys are read again",
			watch->next);
		watch->next = 0;
	} else {
		ob_warn("etcd ends the watch: %.200s", reason);
	}
	stop(watch);
}

static void take_result(struct obl_watch *watch, const json_t *result)
{
	const json_t *events = json_object_get(result, "events");
	const char *wrong = NULL;
	uint64_t revision;

	if (json_is_true(json_object_get(result, "canceled"))) {
		take_cancel(watch, result);
		return;
	}
	if (!obl_wire_revision(result, &revision) || (events && !json_is_array(events)))
		wrong = "a message has no revision";
	else if (json_is_true(json_object_get(result, "created")) &&
		watch->state == OBL_WATCH_OPENING)
		set_state(watch, OBL_WATCH_OPEN, ob_clock_ns());
	else if (json_is_true(json_object_get(result, "created")))
		wrong = "a second confirmation";
	else if (watch->state != OBL_WATCH_OPEN)
		wrong = "a change before the confirmation";
	else if (json_array_size(events))
		wrong = take_events(watch, result, events);
	else if (revision >= watch->next) /* progress: there is no change up to this revision */
		set_next(watch, revision + 1);
	if (wrong)
		distrust(watch, wrong);
	else if (watch->heard && watch->heard < watch->next)
		watch->heard = 0;
}

static void take_line(struct obl_watch *watch, const char *line, size_t size)
{
	json_t *root = json_loadb(line, size, 0, NULL);
	const char *text;
	int code;

	if (obl_etcd_error(root, &code, &text)) {
		if (obl_login_refused(&watch->calls->login, code, text))
			obl_login_forget(&watch->calls->login);
		else
			obl_calls_endpoint_failed(watch->calls, watch->endpoint, text);
		stop(watch);
	} else if (!json_is_object(json_object_get(root, "result"))) {
		obl_calls_endpoint_failed(watch->calls, watch->endpoint, "a damaged watch");
		distrust(watch, "a message is not JSON, or has no result");
	} else {
		take_result(watch, json_object_get(root, "result"));
	}
	json_decref(root);
}

/* Splits what came into lines. */
static void on_data(void *user, const char *bytes, size_t size)
{
	struct obl_watch *watch = user;
	const struct obl_http_request *stream = watch->stream;

	while (size) {
		const char *newline = memchr(bytes, '\n', size);
		size_t part = newline ? (size_t)(newline - bytes) : size;
		struct ob_buf line;

		if (!ob_buf_append(&watch->line, bytes, part)) {
			distrust(watch, "a message is too long");
			return;
		}
		if (!newline)
			return;
		bytes += part + 1;
		size -= part + 1;
		line = watch->line;
		ob_buf_init(&watch->line, OBL_WATCH_LINE_MAX);
		take_line(watch, (const char *)line.data, line.size);
		ob_buf_fini(&line);
		if (watch->stream != stream)
			return;
	}
}

/* The server ended the stream, or the connection was lost. */
static void on_end(void *user, const struct obl_http_answer *answer)
{
	struct obl_watch *watch = user;
	bool opened = watch->state == OBL_WATCH_OPEN;
	uint32_t endpoint = watch->endpoint;

	watch->stream = NULL;
	stop(watch);
	/* An error without a newline at its end is lost; the status tells as much. */
	if (answer->err != OB_ERR_NONE || answer->status != 200 || !opened)
		obl_calls_endpoint_failed(watch->calls, endpoint,
			answer->err ? answer->why : "the watch was refused");
}

static void open_stream(struct obl_watch *watch, uint64_t now)
{
	struct obl_http_call call = {
		.answer_max = BURST_MAX, .data = on_data, .done = on_end, .user = watch
	};
	struct ob_buf body;

	ob_buf_init(&body, OBL_SMALL_MAX);
	obl_wire_watch(&body, watch->prefix, watch->next);
	watch->stream = obl_calls_stream(watch->calls, "/v3/watch", &body, &call, &watch->endpoint);
	ob_buf_fini(&body);
	if (watch->stream)
		set_state(watch, OBL_WATCH_OPENING, now);
}

/* ---- the user ---- */

void obl_watch_init(struct obl_watch *watch)
{
	ob_buf_init(&watch->line, OBL_WATCH_LINE_MAX);
	set_state(watch, OBL_WATCH_IDLE, ob_clock_ns());
}

void obl_watch_fini(struct obl_watch *watch)
{
	if (watch->stream)
		obl_http_cancel(watch->stream);
	watch->stream = NULL;
	watch->state = OBL_WATCH_IDLE;
	ob_buf_fini(&watch->line);
}

void obl_watch_tick(struct obl_watch *watch, uint64_t now)
{
	uint64_t limit = 2 * watch->calls->timeout_ms * OB_MS;

	if (watch->state == OBL_WATCH_IDLE && watch->next == 0)
		read_all(watch, now);
	else if (watch->state == OBL_WATCH_IDLE)
		open_stream(watch, now);
	if (watch->state == OBL_WATCH_OPENING && now > watch->since + limit) {
		obl_calls_endpoint_failed(
			watch->calls, watch->endpoint, "a watch was not confirmed in time");
		if (watch->state == OBL_WATCH_OPENING)
			stop(watch);
	}
	if (watch->state == OBL_WATCH_OPEN && watch->heard &&
		now > watch->heard_ns + OBL_WATCH_LATE_NS &&
		(!watch->replaced || now > watch->replaced + OBL_WATCH_AGAIN_NS)) {
		watch->replaced = now;
		stop(watch);
	}
}

bool obl_watch_follows(const struct obl_watch *watch, uint64_t now)
{
	return watch->synced && (!watch->down_since || now < watch->down_since + OBL_WATCH_DOWN_NS);
}

void obl_watch_heard(struct obl_watch *watch, uint64_t revision, uint64_t started_ns, uint64_t now)
{
	/* A watch from a revision that is not there waits for it, silently. */
	if (watch->next && started_ns > watch->next_ns && revision + 1 < watch->next) {
		distrust(watch, "etcd's revision went back; was it restored from a copy?");
		return;
	}
	if (watch->state != OBL_WATCH_OPEN || watch->heard || revision < watch->next)
		return;
	watch->heard = revision;
	watch->heard_ns = now;
}

void obl_watch_endpoint_failed(struct obl_watch *watch, uint32_t endpoint)
{
	bool streams = watch->state == OBL_WATCH_OPENING || watch->state == OBL_WATCH_OPEN;

	if (streams && watch->endpoint == endpoint)
		stop(watch);
}
