/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "tools/pool_tables.h"

#include <stdio.h>
#include <limits.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "protocol/load.h"

/* A column of a row's member; one that a function makes. */
#define FIELD(title_text, key_text, cell, rank_number)                             \
	{                                                                          \
		.title = (title_text), .key = (key_text), .kind = OBX_CELL_##cell, \
		.rank = (rank_number)                                              \
	}
#define MADE(title_text, function, rank_number)                                   \
	{                                                                         \
		.title = (title_text), .print = (function), .rank = (rank_number) \
	}

/* Appends to a cell; what does not fit is cut. */
static void append(char ret[OBX_CELL_MAX], const char *before, const char *text)
{
	size_t used = strlen(ret);

	snprintf(ret + used, OBX_CELL_MAX - used, "%s%s", used ? before : "", text);
}

/* The strings of an array with blanks between them. */
static void words(const json_t *array, char ret[OBX_CELL_MAX])
{
	const json_t *word;
	size_t i;

	json_array_foreach(array, i, word) if (json_is_string(word))
		append(ret, " ", json_string_value(word));
}

/* ---- servers ---- */

static void print_labels(const json_t *row, const json_t *document, char ret[OBX_CELL_MAX])
{
	json_t *labels = json_object_get(row, "labels");
	const char *key;
	json_t *value;

	(void)document;
	json_object_foreach(labels, key, value)
	{
		append(ret, ",", key);
		if (json_is_string(value) && json_string_value(value)[0]) {
			append(ret, "", "=");
			append(ret, "", json_string_value(value));
		}
	}
}

static void print_addresses(const json_t *row, const json_t *document, char ret[OBX_CELL_MAX])
{
	(void)document;
	words(json_object_get(row, "addresses"), ret);
}

static void print_address(const json_t *row, const json_t *document, char ret[OBX_CELL_MAX])
{
	const char *first = json_string_value(json_array_get(json_object_get(row, "addresses"), 0));

	(void)document;
	append(ret, "", first ? first : "");
}

static void print_of_most(
	const json_t *row, const char *used, const char *most, char ret[OBX_CELL_MAX])
{
	if (!json_is_integer(json_object_get(row, used)))
		return;
	if (json_is_integer(json_object_get(row, most)))
		snprintf(ret, OBX_CELL_MAX, "%llu of %llu", obx_json_number(row, used),
			obx_json_number(row, most));
	else
		snprintf(ret, OBX_CELL_MAX, "%llu", obx_json_number(row, used));
}

static void print_sessions(const json_t *row, const json_t *document, char ret[OBX_CELL_MAX])
{
	(void)document;
	print_of_most(row, "sessions", "max_sessions", ret);
}

const struct obx_column obx_servers_columns[] = {
	FIELD("NAME", "name", TEXT, 0),
	FIELD("STATE", "state", STATE, 0),
	FIELD("GPUS", "devices", NUMBER, 0),
	MADE("SESSIONS", print_sessions, 2),
	FIELD("BUSY", "busy_per_mille", PER_MILLE, 3),
	FIELD("UP", "uptime_s", SECONDS, 6),
	FIELD("DRIVER", "driver", TEXT, 8),
	FIELD("VERSION", "version", TEXT, 7),
	MADE("LABELS", print_labels, 4),
	MADE("ADDRESS", print_address, 5),
	FIELD("HEALTH", "health", TEXT, 1),
	{ .title = NULL },
};

const struct obx_column obx_server_details[] = {
	FIELD("name", "name", TEXT, 0),
	FIELD("state", "state", STATE, 0),
	FIELD("health", "health", TEXT, 0),
	MADE("labels", print_labels, 0),
	MADE("addresses", print_addresses, 0),
	FIELD("version", "version", TEXT, 0),
	FIELD("driver", "driver", TEXT, 0),
	FIELD("CUDA", "cuda", NUMBER, 0),
	MADE("sessions", print_sessions, 0),
	FIELD("busy", "busy_per_mille", PER_MILLE, 0),
	FIELD("up", "uptime_s", SECONDS, 0),
	FIELD("heartbeat before", "heartbeat_age_ms", MS, 0),
	FIELD("incarnation", "incarnation", TEXT, 0),
	{ .title = NULL },
};

/* ---- GPUs ---- */

static void print_gpu_state(const json_t *row, const json_t *document, char ret[OBX_CELL_MAX])
{
	(void)document;
	snprintf(ret, OBX_CELL_MAX, "%s",
		json_is_true(json_object_get(row, "faulty"))              ? "faulty"
			: json_is_true(json_object_get(row, "exclusive")) ? "exclusive"
			: obx_json_number(row, "reservations")            ? "shared"
									  : "free");
}

static void print_power(const json_t *row, const json_t *document, char ret[OBX_CELL_MAX])
{
	(void)document;
	if (json_is_integer(json_object_get(row, "milliwatts")))
		snprintf(ret, OBX_CELL_MAX, "%llu W", obx_json_number(row, "milliwatts") / 1000);
}

static void print_heat(const json_t *row, const json_t *document, char ret[OBX_CELL_MAX])
{
	(void)document;
	if (json_is_integer(json_object_get(row, "celsius")))
		snprintf(ret, OBX_CELL_MAX, "%llu C", obx_json_number(row, "celsius"));
}

static void print_share_by(const json_t *row, const json_t *document, char ret[OBX_CELL_MAX])
{
	(void)document;
	words(json_object_get(row, "share_by"), ret);
}

const struct obx_column obx_gpus_columns[] = {
	FIELD("SERVER", "server", TEXT, 0),
	FIELD("#", "index", NUMBER, 0),
	FIELD("GPU", "name", TEXT, 0),
	MADE("STATE", print_gpu_state, 0),
	FIELD("MEMORY", "memory_bytes", BYTES, 0),
	FIELD("RESERVED", "reserved_bytes", BYTES, 1),
	FIELD("USED", "used_bytes", BYTES, 2),
	FIELD("PROGRAMS", "reservations", NUMBER, 3),
	FIELD("BUSY", "busy_per_mille", PER_MILLE, 4),
	FIELD("SHARE", "share_millionths", MILLIONTHS, 6),
	MADE("SHARE BY", print_share_by, 10),
	MADE("TEMP", print_heat, 5),
	MADE("POWER", print_power, 7),
	FIELD("CC", "capability", TEXT, 8),
	FIELD("UUID", "uuid", TEXT, 9),
	{ .title = NULL },
};

/* ---- reservations ---- */

static void print_id(const json_t *row, const json_t *document, char ret[OBX_CELL_MAX])
{
	(void)document;
	obx_json_text(row, "id", ret);
	ret[OBX_ID_SHOWN] = '\0';
}

static void print_who(const json_t *row, const json_t *document, char ret[OBX_CELL_MAX])
{
	char host[OBX_CELL_MAX];

	(void)document;
	obx_json_text(row, "user", ret);
	obx_json_text(row, "host", host);
	append(ret, "@", host);
}

static void print_age(const json_t *row, const json_t *document, char ret[OBX_CELL_MAX])
{
	unsigned long long now = obx_json_number(document, "time_ms"),
			   since = obx_json_number(row, "since");

	since = ob_min(since, ULLONG_MAX / 1000) * 1000;
	if (since)
		obx_print_duration(now > since ? now - since : 0, ret);
}

static void print_gpus(const json_t *row, const json_t *document, char ret[OBX_CELL_MAX])
{
	const json_t *part;
	size_t i, n = 0;

	(void)document;
	json_array_foreach(json_object_get(row, "parts"), i, part) n +=
		json_array_size(json_object_get(part, "gpus"));
	snprintf(ret, OBX_CELL_MAX, "%zu", n);
}

static void print_servers(const json_t *row, const json_t *document, char ret[OBX_CELL_MAX])
{
	const json_t *part;
	char name[OBX_CELL_MAX];
	size_t i;

	(void)document;
	json_array_foreach(json_object_get(row, "parts"), i, part)
	{
		obx_json_text(part, "server", name);
		append(ret, ",", name);
	}
}

/* Of all parts: running if one is, else kept if one is. */
static void print_state(const json_t *row, const json_t *document, char ret[OBX_CELL_MAX])
{
	const json_t *part;
	char state[OBX_CELL_MAX];
	size_t i;

	(void)document;
	json_array_foreach(json_object_get(row, "parts"), i, part)
	{
		obx_json_text(part, "state", state);
		if (!ret[0] || strcmp(state, "running") == 0 ||
			(strcmp(state, "kept") == 0 && strcmp(ret, "running") != 0))
			snprintf(ret, OBX_CELL_MAX, "%s", state);
	}
}

static void print_memory(const json_t *row, const json_t *document, char ret[OBX_CELL_MAX])
{
	unsigned long long used = 0, most = 0, n;
	char text[32];
	const json_t *part;
	size_t i;

	(void)document;
	json_array_foreach(json_object_get(row, "parts"), i, part)
	{
		n = json_array_size(json_object_get(part, "gpus"));
		used += obx_json_number(part, "used_bytes");
		most += obx_json_number(part, "memory_bytes") * n;
	}
	ob_text_print_size(used, ret, OBX_CELL_MAX);
	ob_text_print_size(most, text, sizeof text);
	append(ret, " of ", text);
}

/* "0.25 by green": the share of each GPU's time, and how its servers keep it. */
static void print_share(const json_t *row, const json_t *document, char ret[OBX_CELL_MAX])
{
	unsigned long long share = obx_json_number(row, "share_millionths");
	char by[OBX_CELL_MAX];
	const json_t *part;
	size_t i;

	(void)document;
	if (!share || share >= OBP_SHARE_ALL)
		return;
	snprintf(ret, OBX_CELL_MAX, "%.2f", (double)share / OBP_SHARE_ALL);
	json_array_foreach(json_object_get(row, "parts"), i, part)
	{
		obx_json_text(part, "share_by", by);
		if (by[0] && !strstr(ret, by))
			append(ret, strstr(ret, " by ") ? ", " : " by ", by);
	}
}

const struct obx_column obx_sessions_columns[] = {
	MADE("ID", print_id, 0),
	FIELD("TENANT", "tenant", TEXT, 3),
	FIELD("PROGRAM", "program", TEXT, 0),
	MADE("WHO", print_who, 4),
	{ .title = "STATE", .key = "state", .kind = OBX_CELL_STATE, .print = print_state },
	MADE("GPUS", print_gpus, 0),
	MADE("SERVERS", print_servers, 1),
	MADE("MEMORY", print_memory, 2),
	MADE("AGE", print_age, 5),
	FIELD("PRIORITY", "priority", TEXT, 6),
	MADE("SHARE", print_share, 7),
	{ .title = NULL },
};

const struct obx_column obx_session_details[] = {
	FIELD("id", "id", TEXT, 0),
	{ .title = "state", .key = "state", .kind = OBX_CELL_STATE, .print = print_state },
	FIELD("tenant", "tenant", TEXT, 0),
	FIELD("program", "program", TEXT, 0),
	MADE("who", print_who, 0),
	FIELD("process", "pid", NUMBER, 0),
	MADE("age", print_age, 0),
	FIELD("priority", "priority", TEXT, 0),
	MADE("share", print_share, 0),
	FIELD("moving to", "moving_to", TEXT, 0),
	FIELD("hold", "hold_s", SECONDS, 0),
	MADE("memory", print_memory, 0),
	{ .title = NULL },
};

static void print_part_gpus(const json_t *row, const json_t *document, char ret[OBX_CELL_MAX])
{
	(void)document;
	words(json_object_get(row, "gpus"), ret);
}

const struct obx_column obx_parts_columns[] = {
	FIELD("SERVER", "server", TEXT, 0),
	FIELD("STATE", "state", STATE, 0),
	FIELD("SESSIONS", "sessions", NUMBER, 0),
	FIELD("USED", "used_bytes", BYTES, 0),
	FIELD("OF (EACH GPU)", "memory_bytes", BYTES, 0),
	MADE("GPUS", print_part_gpus, 0),
	{ .title = NULL },
};

/* ---- queue, quotas, events ---- */

const struct obx_column obx_queue_columns[] = {
	FIELD("#", "position", NUMBER, 0),
	MADE("ID", print_id, 6),
	FIELD("TENANT", "tenant", TEXT, 2),
	FIELD("PROGRAM", "program", TEXT, 0),
	MADE("WHO", print_who, 3),
	FIELD("GPUS", "gpus", NUMBER, 0),
	FIELD("MEMORY", "memory_bytes", BYTES, 1),
	FIELD("WHERE", "where", TEXT, 5),
	FIELD("PRIORITY", "priority", TEXT, 4),
	FIELD("WAITED", "waited_ms", MS, 0),
	FIELD("ESTIMATE", "estimate_ms", MS, 0),
	{ .title = NULL },
};

static void print_quota_gpus(const json_t *row, const json_t *document, char ret[OBX_CELL_MAX])
{
	(void)document;
	print_of_most(row, "gpus", "gpus_limit", ret);
}

static void print_quota_programs(const json_t *row, const json_t *document, char ret[OBX_CELL_MAX])
{
	(void)document;
	print_of_most(row, "reservations", "reservations_limit", ret);
}

static void print_quota_memory(const json_t *row, const json_t *document, char ret[OBX_CELL_MAX])
{
	char limit[32];

	(void)document;
	ob_text_print_size(obx_json_number(row, "memory_bytes"), ret, OBX_CELL_MAX);
	if (!json_is_integer(json_object_get(row, "memory_limit_bytes")))
		return;
	ob_text_print_size(obx_json_number(row, "memory_limit_bytes"), limit, sizeof limit);
	append(ret, " of ", limit);
}

static void print_quota_share(const json_t *row, const json_t *document, char ret[OBX_CELL_MAX])
{
	(void)document;
	snprintf(ret, OBX_CELL_MAX, "%.2f", (double)obx_json_number(row, "share_millionths") / 1e6);
	if (json_is_integer(json_object_get(row, "share_limit_millionths"))) {
		char limit[32];

		snprintf(limit, sizeof limit, "%.2f",
			(double)obx_json_number(row, "share_limit_millionths") / 1e6);
		append(ret, " of ", limit);
	}
}

const struct obx_column obx_quota_columns[] = {
	FIELD("TENANT", "tenant", TEXT, 0),
	MADE("GPUS", print_quota_gpus, 0),
	MADE("MEMORY", print_quota_memory, 0),
	MADE("SHARE", print_quota_share, 2),
	MADE("PROGRAMS", print_quota_programs, 1),
	FIELD("WEIGHT", "weight", NUMBER, 3),
	FIELD("MAX-PRIORITY", "max_priority", TEXT, 4),
	{ .title = NULL },
};

static void print_event_text(const json_t *row, const json_t *document, char ret[OBX_CELL_MAX])
{
	unsigned long long count = obx_json_number(row, "count");
	char times[40];

	(void)document;
	obx_json_text(row, "text", ret);
	if (count > 1) {
		snprintf(times, sizeof times, "(%llu times)", count);
		append(ret, " ", times);
	}
}

const struct obx_column obx_events_columns[] = {
	FIELD("TIME", "time_ms", TIME_MS, 0),
	FIELD("EVENT", "kind", TEXT, 0),
	FIELD("SUBJECT", "subject", TEXT, 0),
	MADE("TEXT", print_event_text, 0),
	{ .title = NULL },
};

/* ---- the head of `outboard top` ---- */

static const char *ending(size_t n)
{
	return n == 1 ? "" : "s";
}

void obx_fleet_head(const json_t *fleet, struct obx_paper paper)
{
	const json_t *info = json_object_get(fleet, "info"), *gpus = json_object_get(fleet, "gpus"),
		     *gpu;
	size_t n_servers = json_array_size(json_object_get(fleet, "servers")),
	       n_gpus = json_array_size(gpus),
	       n_programs = json_array_size(json_object_get(fleet, "reservations"));
	unsigned long long total = 0, reserved = 0, used = 0;
	char name[OBX_CELL_MAX], sizes[3][32], line[2 * OBX_CELL_MAX];
	size_t i;

	json_array_foreach(gpus, i, gpu)
	{
		total += obx_json_number(gpu, "memory_bytes");
		reserved += obx_json_number(gpu, "reserved_bytes");
		used += obx_json_number(gpu, "used_bytes");
	}
	obx_json_text(info, "balancer", name);
	ob_text_print_size(total, sizes[0], sizeof sizes[0]);
	ob_text_print_size(reserved, sizes[1], sizeof sizes[1]);
	ob_text_print_size(used, sizes[2], sizeof sizes[2]);
	snprintf(line, sizeof line,
		"balancer %s: %zu server%s, %zu GPU%s; %s of %s reserved, %s used; %zu program%s, "
		"%llu waiting%s",
		name, n_servers, ending(n_servers), n_gpus, ending(n_gpus), sizes[1], sizes[0],
		sizes[2], n_programs, ending(n_programs), obx_json_number(fleet, "queue_length"),
		json_is_false(json_object_get(info, "registry_usable"))
			? "; THE REGISTRY DOES NOT ANSWER"
			: "");
	printf("%.*s\n", (int)ob_min(strlen(line), (size_t)paper.columns), line);
}
