/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The HTTP server of a balancer with an invented pool behind it, so that dashboard, API and metrics
 * can be tested in any size and state without servers. The figures are invented.
 *
 *     dashboard_pool URL SERVERS GPUS-PER-SERVER [LOOK-MS] [CERT KEY]
 *
 * Tokens: "admin-token", "look-token", "use-token" (tenant "vision"); with the environment variable
 * OPEN set, none is needed. Prints the address to stderr. Lines on stdin change the pool:
 *
 *     silent NAME | beats NAME     heartbeats stop, go on
 *     faulty NAME                  its GPU 0 is faulty
 *     mute NAME                    its GPUs report nothing
 *     hot NAME                     its GPU 0 has 91 degrees and its GPU 1 97 % of memory in use
 *     registry 0|1                 usable
 *     hold 0|1                     commands do not end before the program
 *     end
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "base/uuid.h"
#include "loadbalancer/dashboard/exposition.h"
#include "loadbalancer/dashboard/web.h"

#define GPUS_MAX    16u
#define SERVERS_MAX 1024u
#define EVENTS_MAX  64u
#define HELD_MAX    16u
#define GIB         (1ull << 30)

struct node {
	char name[32];
	enum obl_seen_state state;
	uint64_t beat_ns;
	bool hot, faulty, mute;
};

struct event {
	uint64_t time_ms;
	char kind[24], subject[64], text[200];
};

static struct pool {
	struct node nodes[SERVERS_MAX];
	uint32_t n, gpus;
	uint64_t began; /* ms since 1970 */
	uint64_t events;
	struct event event[EVENTS_MAX];
	bool usable, hold, killed[16];
	struct {
		obl_web_done *done;
		void *user;
	} held[HELD_MAX]; /* commands that end after the HTTP server */
	unsigned n_held;
	struct obl_counts counts;
	struct obl_web *web;
	uv_loop_t loop;
	uv_pipe_t in;
	uv_signal_t term;
	char line[256];
	size_t line_size;
} pool = { .usable = true };

static const struct {
	const char *tenant, *program, *user, *host;
	uint32_t server, gpus;
	uint64_t gib;
} sessions[] = {
	{ "vision", "python train.py --model resnet50", "maria", "wks-12", 0, 2, 40 },
	{ "vision", "python eval.py", "maria", "wks-12", 0, 1, 12 },
	{ "physics", "lbm3d", "jonas", "login-1", 1, 4, 64 },
	{ "language", "python -m vllm.entrypoints.api_server", "serve", "web-3", 2, 8, 72 },
	{ "language", "python finetune.py", "aisha", "wks-40", 1, 1, 30 },
};

#define N_SESSIONS (sizeof sessions / sizeof *sessions)

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

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

static struct obl_seen_gpu gpu_make(uint32_t node, uint32_t index)
{
	double t = (double)ob_clock_ns() / 1e9;
	double wave = 0.6 * sin(t / 7 + node * 1.3 + index * 0.7) + 0.4 * sin(t / 5);
	uint64_t total = 80 * GIB, part = (node * 7 + index * 3) % 10;
	struct obl_seen_gpu gpu = { .server = pool.nodes[node].name,
		.model = node % 3 ? "NVIDIA H100 80GB HBM3" : "NVIDIA A100-SXM4-80GB",
		.index = index,
		.total = total,
		.reserved = part * total / 10,
		.sharers = part ? 1 + (uint32_t)part % 3 : 0,
		.known = 15,
		.used = part * total / 10 / 5 * 4,
		.busy = part ? (uint32_t)(600 + 350 * wave) : 0,
		.celsius = (uint32_t)(part ? 58 + 10 * wave : 34),
		.milliwatts = (uint32_t)(part ? 420000 + 200000 * wave : 71000) };

	gpu.uuid[0] = 0xa0;
	gpu.uuid[1] = (uint8_t)(node >> 8);
	gpu.uuid[2] = (uint8_t)node;
	gpu.uuid[15] = (uint8_t)index;
	if (pool.nodes[node].hot && index == 0)
		gpu.celsius = 91;
	gpu.faulty = pool.nodes[node].faulty && index == 0;
	if (pool.nodes[node].mute)
		gpu.known = 0;
	if (pool.nodes[node].hot && index == 1)
		gpu.used = total / 100 * 97;
	return gpu;
}

/* ---- documents: as loadbalancer/balancer/fleet_json.c makes them ---- */

static void server_write(struct ob_json *json, uint32_t i)
{
	const struct node *node = &pool.nodes[i];

	ob_json_object(json, NULL);
	ob_json_text(json, "name", node->name);
	ob_json_text(json, "state", obl_seen_state_name(node->state));
	ob_json_bool(json, "healthy", true);
	ob_json_text(json, "health", "");
	ob_json_text(json, "version", OB_VERSION);
	ob_json_object(json, "labels");
	ob_json_text(json, "zone", i % 2 ? "a" : "b");
	ob_json_textf(json, "rack", "%u", 1 + i / 4);
	ob_json_end(json);
	ob_json_text(json, "driver", "550.54.15");
	ob_json_uint(json, "devices", pool.gpus);
	ob_json_uint(json, "sessions", i < 3 ? 2 : 0);
	ob_json_uint(json, "heartbeat_age_ms",
		node->state == OBL_SEEN_SILENT ? (ob_clock_ns() - node->beat_ns) / OB_MS : 400);
	ob_json_end(json);
}

static void servers_write(struct ob_json *json)
{
	ob_json_array(json, "servers");
	for (uint32_t i = 0; i < pool.n; i++)
		server_write(json, i);
	ob_json_end(json);
}

static void reading_write(struct ob_json *json, const struct obl_seen_gpu *gpu,
	enum obl_reading reading, const char *key, uint64_t value)
{
	if (gpu->known & 1u << reading)
		ob_json_uint(json, key, value);
	else
		ob_json_null(json, key);
}

static void gpu_write(struct ob_json *json, uint32_t node, uint32_t index)
{
	struct obl_seen_gpu gpu = gpu_make(node, index);
	char uuid[OB_UUID_TEXT];

	ob_uuid_print(gpu.uuid, uuid);
	ob_json_object(json, NULL);
	ob_json_text(json, "server", gpu.server);
	ob_json_uint(json, "index", index);
	ob_json_text(json, "uuid", uuid);
	ob_json_text(json, "name", gpu.model);
	ob_json_text(json, "kind", "gpu");
	ob_json_text(json, "capability", "9.0");
	ob_json_uint(json, "multiprocessors", 132);
	ob_json_uint(json, "memory_bytes", gpu.total);
	ob_json_uint(json, "reserved_bytes", gpu.reserved);
	reading_write(json, &gpu, OBL_READ_USED, "used_bytes", gpu.used);
	ob_json_uint(json, "reservations", gpu.sharers);
	ob_json_uint(json, "sessions", gpu.sharers);
	ob_json_uint(json, "share_millionths", 0);
	ob_json_bool(json, "exclusive", false);
	ob_json_bool(json, "faulty", gpu.faulty);
	reading_write(json, &gpu, OBL_READ_BUSY, "busy_per_mille", gpu.busy);
	reading_write(json, &gpu, OBL_READ_CELSIUS, "celsius", gpu.celsius);
	reading_write(json, &gpu, OBL_READ_POWER, "milliwatts", gpu.milliwatts);
	ob_json_uint(json, "milliwatts_limit", 700000);
	ob_json_end(json);
}

static void gpus_write(struct ob_json *json)
{
	ob_json_array(json, "gpus");
	for (uint32_t i = 0; i < pool.n; i++)
		for (uint32_t g = 0; g < pool.gpus; g++)
			gpu_write(json, i, g);
	ob_json_end(json);
}

static void part_write(struct ob_json *json, unsigned i)
{
	char uuid[OB_UUID_TEXT];

	ob_json_object(json, NULL);
	ob_json_text(json, "server", pool.nodes[sessions[i].server].name);
	ob_json_array(json, "gpus");
	for (uint32_t g = 0; g < sessions[i].gpus && g < pool.gpus; g++) {
		struct obl_seen_gpu gpu = gpu_make(sessions[i].server, g);

		ob_uuid_print(gpu.uuid, uuid);
		ob_json_text(json, NULL, uuid);
	}
	ob_json_end(json);
	ob_json_uint(json, "memory_bytes", sessions[i].gib * GIB);
	ob_json_uint(json, "used_bytes", sessions[i].gib * GIB / 2);
	ob_json_uint(json, "sessions", 1);
	ob_json_text(json, "state", i == 3 ? "granted" : "running");
	ob_json_end(json);
}

static void session_write(struct ob_json *json, unsigned i)
{
	ob_json_object(json, NULL);
	ob_json_textf(json, "id", "%032x", 0x51a0 + i);
	ob_json_text(json, "tenant", sessions[i].tenant);
	ob_json_text(json, "program", sessions[i].program);
	ob_json_text(json, "host", sessions[i].host);
	ob_json_text(json, "user", sessions[i].user);
	ob_json_uint(json, "pid", 4000 + i);
	ob_json_uint(json, "since", pool.began / 1000 - 60 - 4000 * i);
	ob_json_text(json, "priority", "normal");
	ob_json_array(json, "parts");
	part_write(json, i);
	ob_json_end(json);
	ob_json_end(json);
}

static void sessions_write(struct ob_json *json, const struct obl_caller *caller)
{
	unsigned others = 0;

	ob_json_array(json, "reservations");
	for (unsigned i = 0; i < N_SESSIONS; i++) {
		if (pool.n <= sessions[i].server || pool.killed[i])
			continue;
		if (caller->all || strcmp(caller->tenant, sessions[i].tenant) == 0)
			session_write(json, i);
		else
			others++;
	}
	ob_json_end(json);
	ob_json_uint(json, "other_reservations", others);
}

static void queue_write(struct ob_json *json)
{
	ob_json_array(json, "queue");
	for (unsigned i = 0; i < 2 && pool.n; i++) {
		ob_json_object(json, NULL);
		ob_json_uint(json, "position", i + 1);
		ob_json_textf(json, "id", "%032x", 0x9e00 + i);
		ob_json_text(json, "tenant", i ? "physics" : "language");
		ob_json_text(json, "balancer", "invented");
		ob_json_text(json, "program", i ? "lbm3d" : "python pretrain.py");
		ob_json_text(json, "host", "wks-40");
		ob_json_text(json, "user", "aisha");
		ob_json_uint(json, "gpus", i ? 4 : 8);
		ob_json_uint(json, "memory_bytes", 72 * GIB);
		ob_json_text(json, "priority", i ? "normal" : "high");
		ob_json_text(json, "where", i ? "" : "model=H100");
		ob_json_uint(json, "waited_ms", now_ms() - pool.began + 95000 * (i + 1));
		if (i)
			ob_json_null(json, "estimate_ms");
		else
			ob_json_uint(json, "estimate_ms", 840000);
		ob_json_end(json);
	}
	ob_json_end(json);
	ob_json_uint(json, "queue_length", pool.n ? 2 : 0);
	ob_json_uint(json, "other_requests", 0);
}

static void quota_write(struct ob_json *json)
{
	static const char *const names[] = { "language", "physics", "vision" };

	ob_json_array(json, "tenants");
	for (unsigned i = 0; i < 3 && pool.n; i++) {
		ob_json_object(json, NULL);
		ob_json_text(json, "tenant", names[i]);
		ob_json_bool(json, "limited", i < 2);
		ob_json_uint(json, "gpus", i == 0 ? 9 : i == 1 ? 4 : 3);
		if (i < 2)
			ob_json_uint(json, "gpus_limit", i ? 4 : 16);
		else
			ob_json_null(json, "gpus_limit");
		ob_json_uint(json, "memory_bytes", (i == 0 ? 606 : i == 1 ? 256 : 92) * GIB);
		if (i == 0)
			ob_json_uint(json, "memory_limit_bytes", 1024 * GIB);
		else
			ob_json_null(json, "memory_limit_bytes");
		ob_json_uint(json, "reservations", i == 1 ? 1 : 2);
		ob_json_null(json, "reservations_limit");
		ob_json_uint(json, "weight", 1);
		ob_json_text(json, "max_priority", "high");
		ob_json_end(json);
	}
	ob_json_end(json);
}

static void events_write(struct ob_json *json, uint64_t since)
{
	uint64_t first = pool.events > EVENTS_MAX ? pool.events - EVENTS_MAX : 0;

	ob_json_array(json, "events");
	for (uint64_t i = since > first ? since : first; i < pool.events; i++) {
		const struct event *event = &pool.event[i % EVENTS_MAX];

		ob_json_object(json, NULL);
		ob_json_uint(json, "number", i + 1);
		ob_json_uint(json, "time_ms", event->time_ms);
		ob_json_text(json, "kind", event->kind);
		ob_json_text(json, "subject", event->subject);
		ob_json_text(json, "text", event->text);
		ob_json_uint(json, "count", 1);
		ob_json_end(json);
	}
	ob_json_end(json);
}

static void info_write(struct ob_json *json)
{
	ob_json_object(json, "info");
	ob_json_text(json, "balancer", "invented");
	ob_json_text(json, "version", OB_VERSION);
	ob_json_text(json, "registry", "memory");
	ob_json_bool(json, "registry_usable", pool.usable);
	ob_json_text(json, "registry_error", pool.usable ? NULL : "no endpoint answers");
	ob_json_text(json, "policy", "binpack");
	ob_json_end(json);
}

static bool document(void *user, const struct obl_caller *caller, const char *what, uint64_t since,
	char **ret_text, size_t *ret_size)
{
	bool fleet = strcmp(what, "fleet") == 0;
	FILE *file = open_memstream(ret_text, ret_size);
	struct ob_json json;

	(void)user;
	if (!file)
		return false;
	ob_json_begin(&json, file, OB_JSON_COMPACT);
	ob_json_object(&json, NULL);
	ob_json_uint(&json, "schema", 1);
	ob_json_uint(&json, "time_ms", now_ms());
	if (fleet || strcmp(what, "info") == 0)
		info_write(&json);
	if (fleet || strcmp(what, "servers") == 0)
		servers_write(&json);
	if (fleet || strcmp(what, "gpus") == 0)
		gpus_write(&json);
	if (fleet || strcmp(what, "sessions") == 0)
		sessions_write(&json, caller);
	if (fleet || strcmp(what, "queue") == 0)
		queue_write(&json);
	if (fleet || strcmp(what, "quota") == 0)
		quota_write(&json);
	if (fleet || strcmp(what, "events") == 0)
		events_write(&json, since);
	ob_json_end(&json);
	return fclose(file) == 0;
}

/* ---- the rest of the table ---- */

static enum ob_err caller_find(
	void *user, int fd, const char *token, struct obl_caller *ret, struct ob_cause *ret_cause)
{
	(void)user;
	(void)fd;
	*ret = (struct obl_caller){ .scope = "look", .who = "operations", .tenant = "operations" };
	ret->proven = !getenv("OPEN");
	if (getenv("OPEN"))
		token = "admin-token";
	if (!token ||
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

static void command(void *user, const struct obl_caller *caller, const char *verb,
	const char *target, const char *argument, obl_web_done *done, void *done_user)
{
	struct node *node = node_find(target);
	char text[128];

	(void)user;
	if (pool.hold && pool.n_held < HELD_MAX) {
		pool.held[pool.n_held].done = done;
		pool.held[pool.n_held++].user = done_user;
		return;
	}
	snprintf(text, sizeof text, "by %s%s%s", caller->tenant,
		*argument ? ", grace in seconds: " : "", argument);
	if (strcmp(verb, "kill") == 0) {
		char id[33];

		for (unsigned i = 0; i < N_SESSIONS; i++) {
			snprintf(id, sizeof id, "%032x", 0x51a0 + i);
			if (strcmp(id, target) != 0)
				continue;
			pool.killed[i] = true;
			event_add("killed", target, text);
			done(done_user, 0, NULL);
			return;
		}
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
	.document = document,
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
