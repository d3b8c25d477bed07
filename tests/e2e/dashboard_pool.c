/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The HTTP server of a balancer with an invented pool behind it, so that dashboard, API and metrics
 * can be tested in any size and state without servers. The figures are invented.
 *
 *     dashboard_pool URL SERVERS GPUS-PER-SERVER [LOOK-MS] [CERT KEY]
 *
 * Tokens: "admin-token", "look-token", "use-token" (tenant "vision"); with the environment variable
 * OPEN set, none is needed. LIMITS, REPLY_S, DOCUMENTS_BYTES: limits of web.h for tests. Prints the
 * address to stderr. Lines on stdin change the pool:
 *
 *     silent NAME | beats NAME     heartbeats stop, go on
 *     faulty NAME                  its GPU 0 is faulty
 *     mute NAME                    its GPUs report nothing
 *     hot NAME                     its GPU 0 has 91 degrees and its GPU 1 97 % of memory in use
 *     registry 0|1                 usable
 *     hold 0|1                     commands do not end before the program
 *     limited 0|1                  an address has sent too many wrong tokens
 *     revoke TOKEN                 it is not valid any more
 *     arrive                       what is moved runs at its new place
 *     program NAME                 the name of the second session's program
 *     end
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "loadbalancer/dashboard/exposition.h"
#include "loadbalancer/dashboard/web.h"
#include "tests/e2e/dashboard_pool.h"

struct pool pool = { .usable = true,
	.sessions = { { "vision", "python train.py --model resnet50", "maria", "wks-12", 0, 2, 40,
			      true, 2, false, false, 0 },
		{ "vision", pool.program, "maria", "wks-12", 0, 1, 12, false, 0, false, false, 0 },
		{ "physics", "lbm3d", "jonas", "login-1", 1, 4, 64, false, 0, false, false, 0 },
		{ "language", "python -m vllm.entrypoints.api_server", "serve", "web-3", 2, 8, 72,
			false, 0, false, false, 0 },
		{ "language", "python finetune.py", "aisha", "wks-40", 1, 1, 30, true, 0, false,
			false, 0 } },
	.program = "python eval.py" };

static void event_add(const char *kind, const char *subject, const char *text)
{
	struct event *event = &pool.event[pool.events++ % EVENTS_MAX];

	*event = (struct event){ .time_ms = now_ms() };
	snprintf(event->kind, sizeof event->kind, "%s", kind);
	snprintf(event->subject, sizeof event->subject, "%s", subject);
	snprintf(event->text, sizeof event->text, "%s", text);
}

static struct node *node_find(const char *name)
{
	for (uint32_t i = 0; i < pool.n; i++)
		if (strcmp(pool.nodes[i].name, name) == 0)
			return &pool.nodes[i];
	return NULL;
}

/* ---- the rest of the table ---- */

static enum ob_err caller_find(
	void *user, int fd, const char *token, struct obl_caller *ret, struct ob_cause *ret_cause)
{
	(void)user;
	if (pool.limited && fd >= 0)
		return ob_cause_set(ret_cause, OB_ERR_LIMIT, "too many wrong tokens");
	*ret = (struct obl_caller){ .scope = "look", .who = "operations", .tenant = "operations" };
	ret->proven = !getenv("OPEN");
	if (getenv("OPEN"))
		token = "admin-token";
	if (!token || strcmp(token, pool.revoked) == 0 ||
		(strcmp(token, "admin-token") != 0 && strcmp(token, "look-token") != 0 &&
			strcmp(token, "use-token") != 0))
		return ob_cause_set(ret_cause, OB_ERR_DENIED,
			"this token is unknown or was revoked: ask whoever runs the pool for a new "
			"one");
	ret->admin = *token == 'a';
	ret->all = *token != 'u';
	snprintf(ret->scope, sizeof ret->scope, "%s",
		ret->admin         ? "admin"
			: ret->all ? "look"
				   : "use");
	if (!ret->all)
		snprintf(ret->tenant, sizeof ret->tenant, "vision");
	return OB_ERR_NONE;
}

static uint64_t last_event(void *user)
{
	(void)user;
	return pool.events;
}

static struct session *session_find(const char *id)
{
	char own[33];

	for (uint32_t i = 0; i < SESSIONS; i++) {
		session_id_print(i, own);
		if (strcmp(id, own) == 0 && !pool.sessions[i].killed)
			return &pool.sessions[i];
	}
	return NULL;
}

static void session_command(struct session *session, const char *verb, const char *argument,
	const char *text, obl_web_done *done, void *done_user)
{
	const struct node *to =
		*argument ? node_find(argument) : &pool.nodes[(session->server + 1) % pool.n];
	char said[128];

	if (strcmp(verb, "kill") == 0) {
		session->killed = true;
		event_add("killed", session->tenant, text);
		done(done_user, 0, "ended");
	} else if (!to) {
		done(done_user, OBP_POOL_INVALID, "there is no server of this name in the pool");
	} else if (!session->restartable) {
		done(done_user, OBP_POOL_LATER, "its program does not run with --restartable");
	} else {
		session->moving = true;
		session->to = (uint32_t)(to - pool.nodes);
		event_add("moving", session->tenant, to->name);
		snprintf(said, sizeof said, "it is offered a place on %s", to->name);
		done(done_user, 0, said);
	}
}

static void arrive(void)
{
	for (uint32_t i = 0; i < SESSIONS; i++) {
		struct session *session = &pool.sessions[i];

		if (!session->moving)
			continue;
		session->moving = false;
		session->server = session->to;
		session->moves++;
	}
}

static void command(void *user, const struct obl_caller *caller, const char *verb,
	const char *target, const char *argument, obl_web_done *done, void *done_user)
{
	struct node *node = node_find(target);
	struct session *session;
	char text[128];

	(void)user;
	if (pool.hold && pool.n_held < HELD_MAX) {
		pool.held[pool.n_held].done = done;
		pool.held[pool.n_held++].user = done_user;
		return;
	}
	snprintf(text, sizeof text, "by %s%s%s", caller->tenant,
		*argument ? ", grace in seconds: " : "", argument);
	session = session_find(target);
	if (session) {
		session_command(session, verb, argument, text, done, done_user);
		return;
	}
	if (!node) {
		done(done_user, OBP_POOL_INVALID, "there is no such server or session");
		return;
	}
	node->state = strcmp(verb, "cordon") == 0 ? OBL_SEEN_CORDONED
		: strcmp(verb, "drain") == 0      ? OBL_SEEN_DRAINING
						  : OBL_SEEN_READY;
	event_add(obl_seen_state_name(node->state), target, text);
	done(done_user, 0, NULL);
}

static void seen(void *user, struct obl_seen *ret)
{
	(void)user;
	*ret = (struct obl_seen){ .balancer = "invented",
		.version = OB_VERSION,
		.usable = pool.usable,
		.leader = true,
		.counts = &pool.counts };
}

static void refresh(void *user)
{
	(void)user;
}

static void servers(void *user, void (*each)(void *to, const struct obl_seen_server *), void *to)
{
	(void)user;
	for (uint32_t i = 0; i < pool.n; i++) {
		const struct node *node = &pool.nodes[i];

		each(to,
			&(struct obl_seen_server){ .name = node->name,
				.state = node->state,
				.beat_ns = node->state == OBL_SEEN_SILENT
					? ob_clock_ns() - node->beat_ns
					: 400 * OB_MS,
				.sessions = i < 3 ? 2 : 0 });
	}
}

static void gpus(void *user, void (*each)(void *to, const struct obl_seen_gpu *), void *to)
{
	(void)user;
	for (uint32_t i = 0; i < pool.n; i++)
		for (uint32_t g = 0; g < pool.gpus; g++) {
			struct obl_seen_gpu gpu = gpu_make(i, g);

			each(to, &gpu);
		}
}

static void tenants(void *user, void (*each)(void *to, const struct obl_seen_tenant *), void *to)
{
	(void)user;
	each(to,
		&(struct obl_seen_tenant){ .name = "language",
			.reservations = 2,
			.claimed = 2,
			.gpus = 9,
			.memory = 606 * GIB,
			.waiting = 1,
			.waiting_ns = 95 * OB_SECOND });
	each(to,
		&(struct obl_seen_tenant){
			.name = "a\"b", .reservations = 1, .gpus = 2, .memory = GIB });
}

static const struct obl_source source = { .caller = caller_find,
	.document = document_make,
	.last_event = last_event,
	.command = command,
	.seen = seen,
	.refresh = refresh,
	.servers = servers,
	.gpus = gpus,
	.tenants = tenants };

/* ---- the program ---- */

static void closed(void *user)
{
	(void)user;
	for (unsigned i = 0; i < pool.n_held; i++)
		pool.held[i].done(pool.held[i].user, OBP_POOL_LATER, "stopped");
	uv_close((uv_handle_t *)&pool.in, NULL);
	uv_close((uv_handle_t *)&pool.term, NULL);
}

static void end(void)
{
	if (pool.web)
		obl_web_close(pool.web, closed, NULL);
	pool.web = NULL;
}

static void term(uv_signal_t *handle, int number)
{
	(void)handle;
	(void)number;
	end();
}

static void line_obey(char *line)
{
	char *argument = strchr(line, ' ');
	struct node *node;

	if (argument)
		*argument++ = 0;
	node = argument ? node_find(argument) : NULL;
	if (strcmp(line, "end") == 0)
		end();
	else if (strcmp(line, "registry") == 0 && argument)
		pool.usable = *argument == '1';
	else if (strcmp(line, "hold") == 0 && argument)
		pool.hold = *argument == '1';
	else if (strcmp(line, "limited") == 0 && argument)
		pool.limited = *argument == '1';
	else if (strcmp(line, "revoke") == 0 && argument)
		snprintf(pool.revoked, sizeof pool.revoked, "%s", argument);
	else if (strcmp(line, "program") == 0 && argument)
		snprintf(pool.program, sizeof pool.program, "%s", argument);
	else if (strcmp(line, "arrive") == 0)
		arrive();
	else if (strcmp(line, "hot") == 0 && node)
		node->hot = true;
	else if (strcmp(line, "faulty") == 0 && node)
		node->faulty = true;
	else if (strcmp(line, "mute") == 0 && node)
		node->mute = true;
	else if (strcmp(line, "beats") == 0 && node)
		node->state = OBL_SEEN_READY;
	else if (strcmp(line, "silent") == 0 && node) {
		node->state = OBL_SEEN_SILENT;
		node->beat_ns = ob_clock_ns();
		event_add("silent", node->name, "no heartbeat for 5 s; it gets no new sessions");
	}
}

static void allocate(uv_handle_t *handle, size_t size, uv_buf_t *ret)
{
	(void)handle;
	(void)size;
	*ret = uv_buf_init(
		pool.line + pool.line_size, (unsigned)(sizeof pool.line - 1 - pool.line_size));
}

static void arrived(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	char *newline;

	(void)stream;
	(void)buf;
	if (n < 0) {
		end();
		return;
	}
	pool.line_size += (size_t)n;
	pool.line[pool.line_size] = 0;
	while ((newline = strchr(pool.line, '\n')) != NULL) {
		*newline = 0;
		line_obey(pool.line);
		pool.line_size -= (size_t)(newline + 1 - pool.line);
		memmove(pool.line, newline + 1, pool.line_size + 1);
	}
}

static void pool_fill(uint32_t n, uint32_t gpus_each)
{
	pool.n = n;
	pool.gpus = gpus_each;
	pool.began = now_ms();
	for (uint32_t i = 0; i < n; i++)
		snprintf(pool.nodes[i].name, sizeof pool.nodes[i].name, "node-%u", i);
	pool.counts.placed[OBL_PLACED_GRANTED][OBL_BECAUSE_NONE] = 1204;
	pool.counts.placed[OBL_PLACED_REFUSED][OBL_BECAUSE_DENIED] = 7;
	for (unsigned i = 0; i < 100; i++) {
		ob_histogram_add(&pool.counts.placing, 20000 * (i + 1));
		ob_histogram_add(&pool.counts.waiting, OB_SECOND * i);
	}
	for (uint32_t i = 0; i < n && i < 4; i++)
		event_add("joined", pool.nodes[i].name, "8 GPUs, driver 550.54.15");
}

static uint32_t number(const char *variable)
{
	uint64_t value = 0;

	return ob_text_parse_number(getenv(variable), 0, UINT32_MAX, &value) ? (uint32_t)value : 0;
}

int main(int argc, char **argv)
{
	struct obl_web_options options = { .insecure = true };
	uint64_t n = 0, each = 0, look = 0;
	struct ob_cause cause = { 0 };
	char url[600];

	if (argc < 4 || !ob_text_parse_number(argv[2], 0, SERVERS_MAX, &n) ||
		!ob_text_parse_number(argv[3], 0, GPUS_MAX, &each) ||
		(argc > 4 && !ob_text_parse_number(argv[4], 0, 60000, &look))) {
		fprintf(stderr, "usage: dashboard_pool URL SERVERS GPUS [LOOK-MS] [CERT KEY]\n");
		return 2;
	}
	options.url = argv[1];
	options.look_ms = (uint32_t)look;
	options.tokens = !getenv("OPEN");
	options.insecure = !getenv("SECURE");
	options.limits_local = getenv("LIMITS");
	options.reply_s = number("REPLY_S");
	options.documents_bytes = number("DOCUMENTS_BYTES");
	options.cert = argc > 6 ? argv[5] : NULL;
	options.key = argc > 6 ? argv[6] : NULL;
	pool_fill((uint32_t)n, (uint32_t)each);
	signal(SIGPIPE, SIG_IGN);
	uv_loop_init(&pool.loop);
	if (obl_web_open(&pool.loop, &options, &source, &pool.web, url, sizeof url, &cause)) {
		fprintf(stderr, "dashboard_pool: %s\n", cause.text);
		return 1;
	}
	fprintf(stderr, "dashboard_pool: listening on %s\n", url);
	uv_pipe_init(&pool.loop, &pool.in, 0);
	uv_pipe_open(&pool.in, 0);
	uv_read_start((uv_stream_t *)&pool.in, allocate, arrived);
	uv_signal_init(&pool.loop, &pool.term);
	uv_signal_start(&pool.term, term, SIGTERM);
	uv_run(&pool.loop, UV_RUN_DEFAULT);
	return uv_loop_close(&pool.loop) == 0 ? 0 : 3;
}
