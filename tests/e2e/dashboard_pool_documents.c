/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "tests/e2e/dashboard_pool.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/uuid.h"
#include "loadbalancer/dashboard/exposition.h"

uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

struct obl_seen_gpu gpu_make(uint32_t node, uint32_t index)
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

void session_id_print(uint32_t session, char ret[33])
{
	snprintf(ret, 33, "%032x", 0x51a0 + session);
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
	const struct session *s = &pool.sessions[i];
	char uuid[OB_UUID_TEXT];

	ob_json_object(json, NULL);
	ob_json_text(json, "server", pool.nodes[s->server].name);
	ob_json_array(json, "gpus");
	for (uint32_t g = 0; g < s->gpus && g < pool.gpus; g++) {
		struct obl_seen_gpu gpu = gpu_make(s->server, g);

		ob_uuid_print(gpu.uuid, uuid);
		ob_json_text(json, NULL, uuid);
	}
	ob_json_end(json);
	ob_json_uint(json, "memory_bytes", s->gib * GIB);
	ob_json_uint(json, "used_bytes", s->gib * GIB / 2);
	ob_json_uint(json, "sessions", 1);
	ob_json_text(json, "state", i == 3 ? "granted" : "running");
	ob_json_end(json);
}

static void session_write(struct ob_json *json, unsigned i)
{
	const struct session *s = &pool.sessions[i];
	char id[33];

	ob_json_object(json, NULL);
	session_id_print(i, id);
	ob_json_text(json, "id", id);
	ob_json_text(json, "tenant", s->tenant);
	ob_json_text(json, "program", s->program);
	ob_json_text(json, "host", s->host);
	ob_json_text(json, "user", s->user);
	ob_json_uint(json, "pid", 4000 + i);
	ob_json_uint(json, "since", pool.began / 1000 - 60 - 4000 * i);
	ob_json_text(json, "priority", "normal");
	ob_json_bool(json, "restartable", s->restartable);
	ob_json_uint(json, "moves", s->moves);
	ob_json_text(json, "moving_to", s->moving ? pool.nodes[s->to].name : NULL);
	ob_json_array(json, "parts");
	part_write(json, i);
	ob_json_end(json);
	ob_json_end(json);
}

static void sessions_write(struct ob_json *json, const struct obl_caller *caller)
{
	unsigned others = 0;

	ob_json_array(json, "reservations");
	for (unsigned i = 0; i < SESSIONS; i++) {
		const struct session *s = &pool.sessions[i];

		if (pool.n <= s->server || s->killed)
			continue;
		if (caller->all || strcmp(caller->tenant, s->tenant) == 0)
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

bool document_make(void *user, const struct obl_caller *caller, const char *what, uint64_t since,
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
