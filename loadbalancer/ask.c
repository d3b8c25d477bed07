/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/ask.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/thread.h"
#include "transport/connect.h"
#include "transport/stream.h"

/* Asks once on an open connection. */
static enum ob_err ask_on(
	struct obt_stream *stream, unsigned want, uint64_t deadline, struct obp_load *ret)
{
	struct obp_preface preface = {
		.magic = OBP_MAGIC, .version = OBP_VERSION, .intent = OBP_INTENT_LOAD, .route = want
	};
	OB_CLEANUP(ob_freep) uint8_t *map = NULL;
	struct iovec iov = { &preface, sizeof preface };
	struct obp_frame frame;
	enum ob_err err = obt_stream_send_all(stream, &iov, 1, deadline);

	if (!err)
		err = obt_stream_recv_all(stream, &frame, sizeof frame, deadline);
	if (!err && frame.magic != OBP_MAGIC)
		err = OB_ERR_MAGIC;
	else if (!err && frame.version != OBP_FRAME_VERSION)
		err = OB_ERR_VERSION;
	else if (!err &&
		(frame.type != OBP_FRAME_CONTROL || frame.size > OBP_CONTROL_MAX ||
			frame.size % 8 || frame.raw_size > frame.size))
		err = OB_ERR_PROTOCOL;
	if (!err && !(map = malloc(frame.size + 1)))
		err = OB_ERR_NO_MEMORY;
	if (!err)
		err = obt_stream_recv_all(stream, map, frame.size, deadline);
	return err ? err : obp_load_decode(map, frame.raw_size, ret);
}

enum ob_err obl_ask(const struct obt_url *url, unsigned want, uint64_t deadline,
	struct obt_stream *kept, struct obp_load *ret, struct ob_cause *ret_cause)
{
	struct obt_stream stream = { .fd = -1 };
	struct obt_url clear = *url;
	enum ob_err err;

	/*
	 * A server closes connections that were silent for some seconds, and older servers after
	 * each answer: then connect again.
	 */
	if (kept && kept->fd >= 0) {
		if (ask_on(kept, want, deadline, ret) == OB_ERR_NONE)
			return OB_ERR_NONE;
		obt_stream_close(kept);
		kept->fd = -1;
	}
	/*
	 * Questions are in clear on every kind of address: the supervisor, which answers, has no
	 * TLS keys.
	 */
	if (clear.scheme != OBT_UNIX)
		clear.scheme = OBT_TCP;
	err = obt_stream_connect(&clear, deadline, &stream, ret_cause);
	if (err)
		return err;
	err = ask_on(&stream, want, deadline, ret);
	if (kept && !err) {
		*kept = stream;
		return OB_ERR_NONE;
	}
	obt_stream_close(&stream);
	return err ? ob_cause_set(ret_cause, err, "%s", ob_err_text(err)) : OB_ERR_NONE;
}

/* ---- lists ---- */

enum ob_err obl_list_parse(
	const char *text, struct obl_answer *ret, uint32_t *ret_n, struct ob_cause *ret_cause)
{
	struct obt_url url;
	enum ob_err err;
	uint32_t n = 0;

	while (*text) {
		size_t length = strcspn(text, ",");

		if (n == OBL_LIST_MAX || length > OBT_URL_MAX)
			return ob_cause_set(ret_cause, OB_ERR_URL,
				"it is too long: 64 addresses of 512 bytes at most");
		ret[n] = (struct obl_answer){ .cause.code = OB_ERR_TIMEOUT };
		memcpy(ret[n].url, text, length);
		err = obt_url_parse(ret[n].url, &url, ret_cause);
		if (err)
			return err;
		n++;
		text += length + (text[length] == ',');
	}
	if (n == 0)
		return ob_cause_set(ret_cause, OB_ERR_URL,
			"it names no server; write tls://host:14800 or a list of such addresses "
			"with commas between them");
	*ret_n = n;
	return OB_ERR_NONE;
}

void obl_list_drop(char *list, const char *url)
{
	size_t length = strlen(url);

	for (char *at = list; *at;) {
		size_t n = strcspn(at, ","), comma = at[n] == ',';

		if (n == length && memcmp(at, url, n) == 0)
			memmove(at, at + n + comma, strlen(at + n + comma) + 1);
		else
			at += n + comma;
	}
	length = strlen(list);
	if (length && list[length - 1] == ',')
		list[length - 1] = '\0';
}

/* ---- asking all at once ---- */

/*
 * Shared by the asking threads and the caller; the last one frees it, so that a slow look-up of a
 * name does not hold up the caller.
 */
struct round {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	uint32_t n, answered, good, users;
	unsigned want;
	uint64_t deadline;
	struct obl_answer answers[];
};

struct asker {
	struct round *round;
	uint32_t index;
};

static void round_leave(struct round *round)
{
	bool last = --round->users == 0;

	pthread_mutex_unlock(&round->lock);
	if (!last)
		return;
	for (uint32_t i = 0; i < round->n; i++)
		obp_load_fini(&round->answers[i].load);
	pthread_cond_destroy(&round->changed);
	pthread_mutex_destroy(&round->lock);
	free(round);
}

static void *asker_main(void *argument)
{
	struct asker asker = *(struct asker *)argument;
	struct round *round = asker.round;
	struct obl_answer *answer = &round->answers[asker.index];
	uint64_t began = ob_clock_ns();
	struct obp_load load = { .sessions = 0 };
	struct obt_url url;
	struct ob_cause cause = { .code = OB_ERR_NONE };
	enum ob_err err = obt_url_parse(answer->url, &url, &cause);

	free(argument);
	if (!err)
		err = obl_ask(&url, round->want, round->deadline, NULL, &load, &cause);
	pthread_mutex_lock(&round->lock);
	answer->cause = err ? cause : (struct ob_cause){ .code = OB_ERR_NONE };
	answer->took_ns = ob_clock_ns() - began;
	answer->load = load;
	round->answered++;
	round->good += !err;
	pthread_cond_broadcast(&round->changed);
	round_leave(round);
	return NULL;
}

static bool asker_start(struct round *round, uint32_t index)
{
	struct asker *asker = malloc(sizeof *asker);

	if (!asker)
		return false;
	*asker = (struct asker){ round, index };
	if (ob_thread_start(asker_main, asker, 0, NULL))
		return true;
	free(asker);
	return false;
}

static void askers_start(struct round *round)
{
	for (uint32_t i = 0; i < round->n; i++) {
		pthread_mutex_lock(&round->lock);
		round->users++;
		pthread_mutex_unlock(&round->lock);
		if (!asker_start(round, i)) {
			pthread_mutex_lock(&round->lock);
			round->users--;
			round->answered++;
			round->answers[i].cause.code = OB_ERR_NO_MEMORY;
			pthread_mutex_unlock(&round->lock);
		}
	}
}

/*
 * Under the lock. Waits until all have answered, time is over, or one has answered and OBL_LATE_NS
 * have passed, or twice the time until then: on slow links and busy machines the others are as slow.
 */
static void round_wait(struct round *round)
{
	uint64_t until = round->deadline, began = ob_clock_ns();
	bool any = false;

	while (round->answered < round->n) {
		uint64_t now = ob_clock_ns();
		struct timespec at;

		if (round->good && !any) {
			any = true;
			until = ob_min(until, now + ob_max(OBL_LATE_NS, 2 * (now - began)));
		}
		if (now >= until)
			return;
		at = (struct timespec){ .tv_sec = (time_t)(until / OB_SECOND),
			.tv_nsec = (long)(until % OB_SECOND) };
		pthread_cond_timedwait(&round->changed, &round->lock, &at);
	}
}

void obl_ask_all(struct obl_answer *answers, uint32_t n, unsigned want, uint64_t timeout_ns)
{
	struct round *round = calloc(1, sizeof *round + n * sizeof *answers);
	pthread_condattr_t attr;

	if (!round) {
		for (uint32_t i = 0; i < n; i++)
			answers[i].cause.code = OB_ERR_NO_MEMORY;
		return;
	}
	pthread_mutex_init(&round->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC); /* the clock of ob_clock_ns */
	pthread_cond_init(&round->changed, &attr);
	pthread_condattr_destroy(&attr);
	round->n = n;
	round->want = want;
	round->users = 1;
	round->deadline = ob_clock_ns() + timeout_ns;
	memcpy(round->answers, answers, n * sizeof *answers);
	for (uint32_t i = 0; i < n; i++)
		round->answers[i].cause.code = OB_ERR_TIMEOUT;
	askers_start(round);
	pthread_mutex_lock(&round->lock);
	round_wait(round);
	for (uint32_t i = 0; i < n; i++) {
		answers[i] = round->answers[i];
		round->answers[i].load.listed = NULL; /* the caller owns it now */
		round->answers[i].load.n_sessions = 0;
	}
	round_leave(round);
}

/* ---- choosing ---- */

void obl_server_from(const struct obl_answer *answer, struct obl_server *ret)
{
	const struct obp_load *load = &answer->load;

	*ret = (struct obl_server){ .alive = answer->cause.code == OB_ERR_NONE,
		.draining = load->draining,
		.sessions = load->sessions,
		.max_sessions = load->max_sessions,
		.busy = load->busy,
		.cuda = load->cuda_version,
		.name = answer->url,
		.link_ns = answer->took_ns,
		.n_devices = ob_min(load->n_devices, OBL_DEVICES_MAX) };
	for (uint32_t i = 0; i < ret->n_devices; i++) {
		const struct obp_load_device *from = &load->devices[i];
		struct obl_device *to = &ret->devices[i];

		to->model = from->name;
		to->total = from->total;
		to->reserved = from->used;
		to->units = from->units;
		to->clock_mhz = from->clock_khz / 1000;
		to->sharers = from->sharers;
		to->capability = (uint16_t)ob_min(from->capability, UINT16_MAX);
		to->busy = (uint16_t)ob_min(load->busy, UINT16_MAX); /* known for all together */
		to->kind = from->ptx_only || strcmp(load->driver, "dryrun") == 0 ? OBL_SOFTWARE
										 : OBL_GPU;
	}
	obl_server_score(ret);
}

static uint64_t seed(void)
{
	return ob_clock_ns() ^ (uint64_t)getpid() << 32;
}

static enum ob_err pick(const struct obl_answer *answers, uint32_t n,
	const struct obl_request *request, enum obl_policy policy, uint32_t *ret_index,
	struct ob_cause *ret_cause)
{
	OB_CLEANUP(ob_freep) struct obl_server *servers = calloc(n, sizeof *servers);
	struct obl_state state = { .turn = seed(), .random = seed() };
	struct obl_choice choice;
	char text[512];

	if (!servers)
		return ob_cause_set(ret_cause, OB_ERR_NO_MEMORY, "no memory");
	for (uint32_t i = 0; i < n; i++)
		obl_server_from(&answers[i], &servers[i]);
	if (obl_place(servers, n, request, policy, &state, &choice)) {
		*ret_index = choice.parts[0].server;
		return OB_ERR_NONE;
	}
	obl_explain(&choice, servers, request, text, sizeof text);
	return ob_cause_set(ret_cause,
		choice.left_out[OBL_DEAD] == n ? OB_ERR_CONNECT : OB_ERR_REFUSED,
		"none of the %u servers can take this session: %s. 'outboard check --server LIST' "
		"shows each",
		n, text);
}

enum ob_err obl_pick(const char *list, const struct obl_request *request, enum obl_policy policy,
	uint64_t timeout_ns, char ret_url[OBT_URL_MAX + 1], struct ob_cause *ret_cause)
{
	OB_CLEANUP(ob_freep) struct obl_answer *answers = calloc(OBL_LIST_MAX, sizeof *answers);
	struct ob_cause cause;
	uint32_t n = 0, index = 0;
	enum ob_err err;

	if (!answers)
		return ob_cause_set(ret_cause, OB_ERR_NO_MEMORY, "no memory");
	err = obl_list_parse(list, answers, &n, &cause);
	if (err)
		return ob_cause_set(
			ret_cause, err, "the list of servers '%.200s': %s", list, cause.text);
	if (n > 1) {
		obl_ask_all(answers, n, 0, timeout_ns);
		err = pick(answers, n, request, policy, &index, ret_cause);
	}
	if (!err)
		memcpy(ret_url, answers[index].url, sizeof answers[index].url);
	for (uint32_t i = 0; i < n; i++)
		obp_load_fini(&answers[i].load);
	return err;
}
