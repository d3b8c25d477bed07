/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "tools/reserve.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "loadbalancer/access.h"
#include "loadbalancer/place.h"
#include "loadbalancer/pool_query.h"
#include "tools/command.h"
#include "transport/pin.h"

#define VERB    "outboard run: "
#define OVER_NS (2 * OB_SECOND) /* for telling one balancer that the program has ended */

/* ---- interrupts ---- */

static volatile sig_atomic_t interrupted; /* the signal's number */

static void on_signal(int number)
{
	interrupted = number;
}

static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };

static void signals_catch(void)
{
	struct sigaction action = { .sa_handler = on_signal }, old;

	for (size_t i = 0; i < ob_count(numbers); i++)
		/* a signal that is ignored, as by nohup, stays so */
		if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
			sigaction(numbers[i], &action, NULL);
}

void obx_reserve_signals_default(void)
{
	struct sigaction old;

	for (size_t i = 0; i < ob_count(numbers); i++)
		if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler == on_signal)
			signal(numbers[i], SIG_DFL);
}

/* Ends the process as the signal would have ended it. */
static void signal_obey(void)
{
	sigset_t set;

	signal(interrupted, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, interrupted);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	raise(interrupted);
}

/* ---- the line that says what is waited for ---- */

struct status {
	bool terminal; /* the line is redrawn in place */
	bool drawn;
};

static unsigned columns(void)
{
	struct winsize window = { .ws_col = 0 };
	const char *text = getenv("COLUMNS");
	uint64_t number;

	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col)
		return window.ws_col;
	return text && ob_text_parse_number(text, 1, 10000, &number) ? (unsigned)number : 80;
}

/* Cuts text to n columns; no character is cut in two. */
static void cut(char *text, unsigned n)
{
	size_t at = 0;

	for (unsigned used = 0; text[at] && used < n; used++)
		for (at++; ((unsigned char)text[at] & 0xc0) == 0x80;)
			at++;
	text[at] = '\0';
}

static void status_clear(struct status *status)
{
	if (status->drawn)
		fputs("\r\033[K", stderr);
	status->drawn = false;
}

static void status_show(struct status *status, char *text)
{
	if (!status->terminal) {
		ob_info("%s", text);
		return;
	}
	cut(text, columns() > 11 ? columns() - 11 : 1);
	fprintf(stderr, "\r\033[Koutboard: %s", text);
	status->drawn = true;
}

static void duration(uint64_t ms, char *ret, size_t size)
{
	uint64_t s = (ms + 999) / 1000;

	if (s < 100)
		snprintf(ret, size, "%llu s", (unsigned long long)s);
	else if (s < 6000)
		snprintf(ret, size, "%llu min", (unsigned long long)((s + 59) / 60));
	else
		snprintf(ret, size, "%llu h", (unsigned long long)((s + 3599) / 3600));
}

static void on_queued(void *context, const struct obp_pool_queued *queued)
{
	char text[OBP_POOL_TEXT_MAX + 128], about[48] = "";

	if (queued->estimate_ms) {
		memcpy(about, ", about ", 9);
		duration(queued->estimate_ms, about + 8, sizeof about - 8);
	}
	snprintf(text, sizeof text, "waiting for GPUs: position %u of %u%s%s%s", queued->position,
		queued->length, about, queued->reason[0] ? ": " : "", queued->reason);
	status_show(context, text);
}

static void on_lost(void *context, const char *why)
{
	char text[OB_CAUSE_TEXT + 128];

	snprintf(text, sizeof text, "waiting for GPUs: a balancer was lost, asking another one: %s",
		why);
	status_show(context, text);
}

static bool is_interrupted(void *context)
{
	(void)context;
	return interrupted != 0;
}

/* ---- the request ---- */

/* Copies a wish; false: it is too long, and an error was printed. */
static bool text_copy(char *ret, size_t size, const char *text, const char *option)
{
	if (!text)
		return true;
	if (strlen(text) < size) {
		snprintf(ret, size, "%s", text);
		return true;
	}
	fprintf(stderr, VERB "--%s is too long: %zu characters are the most\n", option, size - 1);
	return false;
}

static bool ask_fill(struct obp_pool_ask *ask, const struct obx_wish *wish, const char *program)
{
	enum obl_policy policy;
	int priority = wish->priority ? ob_words_find("low|normal|high", wish->priority) : -1;

	if (obl_pool_ask_init(ask, program)) {
		fprintf(stderr, VERB "the system gives no random bytes for a reservation's id\n");
		return false;
	}
	ask->gpus = wish->gpus ? wish->gpus : 1;
	ask->linger_s = wish->hold_s;
	ask->exclusive = wish->exclusive;
	ask->one_server = wish->one_server;
	ask->restartable = wish->restartable;
	ask->priority = (uint32_t)(priority + 1);
	if (wish->vram)
		ob_text_parse_size(wish->vram, &ask->memory); /* checked by the option */
	if (wish->share)
		ask->share = (uint32_t)(strtod(wish->share, NULL) * OBP_SHARE_ALL + 0.5);
	if (wish->policy && obl_policy_parse(wish->policy, &policy))
		ask->policy = 1 + (uint32_t)policy;
	return text_copy(ask->where, sizeof ask->where, wish->where, "where") &&
		text_copy(ask->apart, sizeof ask->apart, wish->apart, "apart");
}

/* ---- the result ---- */

/* What a request has come to. */
struct answer {
	int code;                        /* 0, or the exit code */
	bool refused;                    /* by a balancer: no connection has failed */
	bool later;                      /* the same request may have another answer soon */
	char text[OBL_POOL_EXPLAIN_MAX]; /* why; "": nothing, or it was printed */
};

static void answer_print(const struct answer *answer)
{
	if (answer->text[0])
		fprintf(stderr, VERB "%s\n", answer->text);
}

static void answer_refused(
	struct answer *ret, const struct obp_pool_refused *refused, uint32_t wait_s)
{
	ret->code = obp_pool_exit_code(refused->code);
	ret->refused = true;
	ret->later = refused->code == OBP_POOL_LATER;
	obl_pool_explain(refused, wait_s, ret->text);
}

static int failed_code(enum ob_err err)
{
	switch (err) {
	case OB_ERR_TLS:
	case OB_ERR_CERTIFICATE:
	case OB_ERR_DENIED:
		return obp_pool_exit_code(OBP_POOL_DENIED);
	case OB_ERR_URL:
	case OB_ERR_ARGUMENT:
		return obp_pool_exit_code(OBP_POOL_INVALID);
	case OB_ERR_PROTOCOL:
	case OB_ERR_VERSION:
	case OB_ERR_MAGIC:
	case OB_ERR_LIMIT:
	case OB_ERR_NO_MEMORY:
		return obp_pool_exit_code(OBP_POOL_FAULT);
	default:
		return obp_pool_exit_code(OBP_POOL_LATER);
	}
}

/* The connections have failed: a balancer that comes back, or another one, may answer. */
static void answer_failed(struct answer *ret, enum ob_err err, const struct ob_cause *cause)
{
	ret->code = failed_code(err);
	ret->later = err != OB_ERR_URL && err != OB_ERR_ARGUMENT && err != OB_ERR_NO_MEMORY;
	snprintf(ret->text, sizeof ret->text, "the pool cannot be asked: %s", cause->text);
}

int obx_pool_failed(const char *verb, enum ob_err err, const struct ob_cause *cause)
{
	fprintf(stderr, "%s: the pool cannot be asked: %s\n", verb, cause->text);
	return failed_code(err);
}

static void number_pass(const char *variable, uint32_t value)
{
	char text[16];

	snprintf(text, sizeof text, "%u", value);
	if (value)
		setenv(variable, text, 1);
	else
		unsetenv(variable); /* --wait-for 0 counts before OUTBOARD_WAIT */
}

static void text_pass(const char *variable, const char *text)
{
	if (text && *text)
		setenv(variable, text, 1);
	else
		unsetenv(variable);
}

/*
 * All wishes, for the client library: if the reservation has ended before the program uses a GPU,
 * the library asks the pool again. Those that servers without a pool know, too, are passed by the
 * caller of obx_reserve.
 */
static void wishes_pass(const struct obx_wish *wish)
{
	number_pass("OUTBOARD_GPUS", wish->gpus);
	number_pass("OUTBOARD_WAIT", wish->wait_s);
	number_pass("OUTBOARD_HOLD", wish->hold_s);
	number_pass("OUTBOARD_EXCLUSIVE", wish->exclusive);
	number_pass("OUTBOARD_ONE_SERVER", wish->one_server);
	number_pass("OUTBOARD_RESTARTABLE", wish->restartable);
	text_pass("OUTBOARD_WHERE", wish->where);
	text_pass("OUTBOARD_APART", wish->apart);
}

/* The environment of the program. */
static void environment_set(
	const struct obx_way *way, const struct obx_wish *wish, const struct obl_access *access)
{
	char *pins = NULL;

	setenv("OUTBOARD_POOL", way->pool, 1);
	setenv("OUTBOARD_SERVER", access->servers, 1);
	setenv("OUTBOARD_TICKET", access->tickets, 1);
	/* the user's list was read when the balancer was asked; a wrong one has ended that */
	if (access->pins[0] &&
		!obt_pins_join(getenv("OUTBOARD_TLS_PIN"), access->pins, &pins, NULL))
		setenv("OUTBOARD_TLS_PIN", pins, 1);
	free(pins);
	wishes_pass(wish);
}

static int granted(const struct obx_way *way, const struct obx_wish *wish,
	const struct obp_pool_grant *grant, struct obx_reservation *ret)
{
	static char servers[OBL_ACCESS_TEXT];
	struct obl_access access;
	struct ob_cause cause;

	memcpy(ret->id, grant->id, sizeof ret->id);
	ret->balancers = way->pool;
	if (obl_access_make(grant, &access, &cause)) {
		fprintf(stderr, VERB "%s\n", cause.text);
		obx_reserve_back(ret);
		return obp_pool_exit_code(OBP_POOL_FAULT);
	}
	ob_info("reserved %u GPU%s on %s", access.n_devices, access.n_devices == 1 ? "" : "s",
		access.servers);
	environment_set(way, wish, &access);
	snprintf(servers, sizeof servers, "%s", access.servers);
	for (char *p = servers; *p; p++)
		if (*p == '+')
			*p = ',';
	ret->servers = servers;
	obl_access_fini(&access);
	return 0;
}

struct request {
	const struct obx_way *way;
	const struct obx_wish *wish;
	const char *program;
};

/*
 * Asks once. wait_s: how long the request may wait. id: of the place that was offered; NULL: any.
 */
static struct answer reserve(const struct request *request, uint32_t wait_s, const uint8_t *id,
	struct obx_reservation *ret)
{
	const char *kind = getenv("TERM");
	struct status status = { .terminal = isatty(STDERR_FILENO) &&
			!(kind && strcmp(kind, "dumb") == 0) };
	const struct obl_pool pool = { .balancers = request->way->pool,
		.timeout_ns = obl_pool_timeout_ns(),
		.queued = on_queued,
		.lost = on_lost,
		.cancelled = is_interrupted,
		.context = &status };
	struct answer answer = { .code = obp_pool_exit_code(OBP_POOL_INVALID) };
	struct obp_pool_refused refused;
	struct obp_pool_grant grant;
	struct obp_pool_ask ask;
	struct ob_cause cause;
	enum ob_err err;

	if (!ask_fill(&ask, request->wish, request->program))
		return answer;
	ask.wait_s = wait_s;
	ask.offered = id != NULL;
	if (id)
		memcpy(ask.id, id, sizeof ask.id);
	signals_catch();
	err = obl_pool_ask(&pool, &ask, &grant, &refused, &cause);
	status_clear(&status);
	if (err == OB_ERR_CANCELLED) {
		fprintf(stderr, VERB "cancelled while waiting for GPUs\n");
		signal_obey();
	}
	if (err == OB_ERR_REFUSED) {
		answer_refused(&answer, &refused, wait_s);
	} else if (err) {
		answer_failed(&answer, err, &cause);
	} else {
		answer.code = granted(request->way, request->wish, &grant, ret);
		free(grant.parts);
	}
	return answer;
}

int obx_reserve(const struct obx_way *way, const struct obx_wish *wish, const char *program,
	struct obx_reservation *ret)
{
	const struct request request = { way, wish, program };
	struct answer answer = reserve(&request, wish->wait_s, NULL, ret);

	answer_print(&answer);
	return answer.code;
}

/* Sleeps; an interrupt ends the process. */
static void pause_for(uint64_t seconds)
{
	sleep((unsigned)seconds);
	if (interrupted)
		signal_obey();
}

/* Asks for the offered place while it is kept. The last answer. */
static struct answer reserve_offered(const struct request *request, const uint8_t *id,
	uint64_t until_ns, struct obx_reservation *ret)
{
	for (;;) {
		struct answer answer = reserve(request, 0, id, ret);

		if (!answer.later || ob_clock_ns() + OB_SECOND > until_ns)
			return answer;
		pause_for(1);
	}
}

/* Asks for any place until `end`, and prints each new answer. Returns 0 or the exit code. */
static int reserve_other(const struct request *request, uint64_t end, struct obx_reservation *ret)
{
	char told[OBL_POOL_EXPLAIN_MAX] = "";
	uint64_t pause_s = 1, now;

	for (;;) {
		struct answer answer;

		now = ob_clock_ns();
		answer = reserve(
			request, (uint32_t)(now < end ? (end - now) / OB_SECOND : 0), NULL, ret);
		if (strcmp(answer.text, told) != 0)
			answer_print(&answer);
		memcpy(told, answer.text, sizeof told);
		now = ob_clock_ns();
		/* what no server can fulfil now, one that is being restarted can in a minute */
		if ((!answer.later && answer.code != obp_pool_exit_code(OBP_POOL_CAPACITY)) ||
			now + pause_s * OB_SECOND > end)
			return answer.code;
		pause_for(pause_s);
		pause_s = ob_min(2 * pause_s, 30u);
	}
}

/* Denied by a balancer: by the program's user, or by an operator. */
static bool is_final(const struct answer *answer)
{
	return answer->code == 0 ||
		(answer->refused && answer->code == obp_pool_exit_code(OBP_POOL_DENIED));
}

int obx_reserve_again(const struct obx_way *way, const struct obx_wish *wish, const char *program,
	const uint8_t id[OBP_RESERVATION_BYTES], uint64_t until_ns, struct obx_reservation *ret)
{
	const struct request request = { way, wish, program };
	uint64_t end = ob_clock_ns() + ob_max(wish->wait_s, OBX_AGAIN_WAIT_S) * OB_SECOND;
	uint8_t before[OBP_RESERVATION_BYTES];
	struct answer answer;

	memcpy(before, ret->id, sizeof before);
	answer = reserve_offered(&request, id, until_ns, ret);
	answer_print(&answer);
	if (is_final(&answer))
		return answer.code;
	answer = reserve(&request, 0, before, ret);
	if (answer.code == 0)
		fprintf(stderr,
			VERB "the place that was offered cannot be had; the program is started "
			     "again where it was\n");
	if (is_final(&answer)) {
		answer_print(&answer);
		return answer.code;
	}
	fprintf(stderr, VERB "the place that was offered cannot be had; asking for another one\n");
	return reserve_other(&request, end, ret);
}

void obx_reserve_back(const struct obx_reservation *reservation)
{
	const struct obl_pool pool = { .balancers = reservation->balancers,
		.timeout_ns = obl_pool_timeout_ns() };
	struct ob_cause cause;

	if (obl_pool_cancel(&pool, reservation->id, false, &cause))
		ob_warn("the reservation could not be given back; it ends by itself within %u s: "
			"%s",
			OBP_POOL_TICKET_S, cause.text);
}

void obx_reserve_end(const struct obx_reservation *reservation)
{
	const struct obl_pool pool = { .balancers = reservation->balancers,
		.timeout_ns = ob_min(obl_pool_timeout_ns(), OVER_NS) };
	struct ob_cause cause;

	if (obl_pool_cancel(&pool, reservation->id, true, &cause))
		ob_info("the pool cannot be told that the program has ended; its reservation ends "
			"by itself within %u s: %s",
			OBP_POOL_LINGER_S, cause.text);
}

void obx_reserve_interrupted(const struct obx_reservation *reservation)
{
	if (!interrupted)
		return;
	obx_reserve_back(reservation);
	signal_obey();
}
