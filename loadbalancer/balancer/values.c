/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/balancer/values.h"

#include <string.h>

#include "base/uuid.h"
#include "loadbalancer/balancer/fields.h"

/* ---- servers ---- */

static bool known_device_fill(const json_t *o, struct obl_known_device *ret)
{
	return obl_get_uuid(o, "uuid", ret->uuid) &&
		obl_get_text(o, "name", ret->name, sizeof ret->name) &&
		obl_get_number(o, "total", OBL_MEMORY_MAX, &ret->total) &&
		obl_get_small(o, "units", OBL_COUNT_MAX, &ret->units) &&
		obl_get_small(o, "clock_khz", UINT32_MAX, &ret->clock_khz) &&
		obl_get_small(o, "capability", 1000, &ret->capability) &&
		obl_get_flag(o, "soft", &ret->soft);
}

static bool known_server_fill(const json_t *o, void *out)
{
	struct obl_known_server *ret = out;
	const json_t *list;

	if (!obl_get_hex(o, "incarnation", &ret->incarnation) || !ret->incarnation ||
		!obl_get_text(o, "version", ret->version, sizeof ret->version) ||
		!obl_get_text(o, "urls", ret->urls, sizeof ret->urls) ||
		!obl_get_text(o, "pin", ret->pin, sizeof ret->pin) ||
		!obl_get_text(o, "labels", ret->labels, sizeof ret->labels) ||
		!obl_get_small(o, "cuda", 1000000, &ret->cuda) ||
		!(list = obl_get_list(o, "devices", OBP_DEVICE_MAX, &ret->n_devices)))
		return false;
	for (uint32_t i = 0; i < ret->n_devices; i++)
		if (!known_device_fill(json_array_get(list, i), &ret->devices[i]))
			return false;
	return true;
}

bool obl_known_server_read(const char *text, struct obl_known_server *ret)
{
	return obl_read_with(text, known_server_fill, ret);
}

char *obl_known_server_text(const struct obl_known_server *server)
{
	json_t *o = json_object(), *list = json_array();

	obl_put_hex(o, "incarnation", server->incarnation);
	obl_put_text(o, "version", server->version);
	obl_put_text(o, "urls", server->urls);
	obl_put_text(o, "pin", server->pin);
	obl_put_text(o, "labels", server->labels);
	obl_put_number(o, "cuda", server->cuda);
	for (uint32_t i = 0; i < server->n_devices; i++) {
		const struct obl_known_device *d = &server->devices[i];
		json_t *device = json_object();

		obl_put_uuid(device, "uuid", d->uuid);
		obl_put_text(device, "name", d->name);
		obl_put_number(device, "total", d->total);
		obl_put_number(device, "units", d->units);
		obl_put_number(device, "clock_khz", d->clock_khz);
		obl_put_number(device, "capability", d->capability);
		obl_put_flag(device, "soft", d->soft);
		json_array_append_new(list, device);
	}
	json_object_set_new(o, "devices", list);
	return obl_object_text(o);
}

/* ---- ledgers ---- */

static bool ledger_device_fill(const json_t *o, struct obl_ledger_device *ret)
{
	return obl_get_uuid(o, "uuid", ret->uuid) &&
		obl_get_number(o, "total", OBL_MEMORY_MAX, &ret->total) &&
		obl_get_number(o, "reserved", OBL_MEMORY_MAX, &ret->reserved) &&
		obl_get_number(o, "share", UINT32_MAX, &ret->share) &&
		obl_get_small(o, "sharers", OBL_COUNT_MAX, &ret->sharers) &&
		obl_get_flag(o, "exclusive", &ret->exclusive);
}

static bool ledger_fill(const json_t *o, void *out)
{
	struct obl_ledger *ret = out;
	const json_t *list;

	if (!obl_get_hex(o, "incarnation", &ret->incarnation) ||
		!obl_get_number(o, "fence", INT64_MAX, &ret->fence) ||
		!(list = obl_get_list(o, "devices", OBP_DEVICE_MAX, &ret->n_devices)))
		return false;
	for (uint32_t i = 0; i < ret->n_devices; i++)
		if (!ledger_device_fill(json_array_get(list, i), &ret->devices[i]))
			return false;
	return true;
}

bool obl_ledger_read(const char *text, struct obl_ledger *ret)
{
	return obl_read_with(text, ledger_fill, ret);
}

char *obl_ledger_text(const struct obl_ledger *ledger)
{
	json_t *o = json_object(), *list = json_array();

	obl_put_hex(o, "incarnation", ledger->incarnation);
	obl_put_number(o, "fence", ledger->fence);
	for (uint32_t i = 0; i < ledger->n_devices; i++) {
		const struct obl_ledger_device *d = &ledger->devices[i];
		json_t *device = json_object();

		obl_put_uuid(device, "uuid", d->uuid);
		obl_put_number(device, "total", d->total);
		obl_put_number(device, "reserved", d->reserved);
		obl_put_number(device, "share", d->share);
		obl_put_number(device, "sharers", d->sharers);
		obl_put_flag(device, "exclusive", d->exclusive);
		json_array_append_new(list, device);
	}
	json_object_set_new(o, "devices", list);
	return obl_object_text(o);
}

/* ---- reservations ---- */

static bool holding_fill(const json_t *o, struct obl_holding *ret)
{
	const json_t *list;

	if (!obl_get_name(o, "server", ret->server) ||
		!obl_get_hex(o, "incarnation", &ret->incarnation) ||
		!obl_get_number(o, "fence", INT64_MAX, &ret->fence) ||
		!obl_get_number(o, "memory", OBL_MEMORY_MAX, &ret->memory) ||
		!(list = obl_get_list(o, "devices", OBP_DEVICE_MAX, &ret->n_devices)))
		return false;
	for (uint32_t i = 0; i < ret->n_devices; i++) {
		const char *uuid = json_string_value(json_array_get(list, i));

		if (!uuid || !ob_uuid_parse(uuid, ret->devices[i]))
			return false;
	}
	return true;
}

/* Balancers of earlier versions did not write it. */
static bool again_fill(const json_t *o, struct obl_reservation *ret)
{
	return !o ||
		(obl_get_text(o, "where", ret->where, sizeof ret->where) &&
			obl_get_small(o, "cuda", 1000000, &ret->cuda) &&
			obl_get_small(o, "moves", UINT32_MAX, &ret->moves) &&
			obl_get_small(o, "load", OBL_LOAD_MAX, &ret->load) &&
			obl_get_number(o, "moved", INT64_MAX / 1000, &ret->moved) &&
			obl_get_id(o, "successor", ret->successor) &&
			(!json_object_get(o, "killed") ||
				obl_get_flag(o, "killed", &ret->killed)) &&
			(!json_object_get(o, "from") || obl_get_name(o, "from", ret->from)));
}

static bool reservation_fill(const json_t *o, void *out)
{
	struct obl_reservation *ret = out;
	const json_t *list;

	if (!obl_get_id(o, "id", ret->id) || !obl_get_name(o, "tenant", ret->tenant) ||
		!obl_get_text(o, "program", ret->program, sizeof ret->program) ||
		!obl_get_text(o, "host", ret->host, sizeof ret->host) ||
		!obl_get_text(o, "user", ret->user, sizeof ret->user) ||
		!obl_get_text(o, "apart", ret->apart, sizeof ret->apart) ||
		!obl_get_number(o, "pid", INT64_MAX, &ret->pid) ||
		!obl_get_number(o, "issued", INT64_MAX, &ret->issued) ||
		!obl_get_number(o, "expires", INT64_MAX, &ret->expires) ||
		!obl_get_small(o, "share", OBP_SHARE_ALL, &ret->share) ||
		!obl_get_small(o, "priority", 3, &ret->priority) || ret->priority == 0 ||
		!obl_get_small(o, "linger", OBP_POOL_LINGER_MAX_S, &ret->linger_s) ||
		!obl_get_flag(o, "exclusive", &ret->exclusive) ||
		!obl_get_flag(o, "restartable", &ret->restartable) ||
		!obl_get_small(o, "granted", OBP_POOL_PARTS_MAX, &ret->granted) ||
		!(list = obl_get_list(o, "parts", OBP_POOL_PARTS_MAX, &ret->n_parts)) ||
		ret->granted < ret->n_parts)
		return false;
	if (!again_fill(json_object_get(o, "again"), ret))
		return false;
	for (uint32_t i = 0; i < ret->n_parts; i++)
		if (!holding_fill(json_array_get(list, i), &ret->parts[i]))
			return false;
	return true;
}

/* Also of a program that cannot be started again any more: its last move may have to be noted. */
static bool was_moved(const struct obl_reservation *r)
{
	static const uint8_t none[sizeof r->successor];

	return r->from[0] || r->moves || r->killed || memcmp(r->successor, none, sizeof none) != 0;
}

static json_t *again_write(const struct obl_reservation *r)
{
	json_t *o = json_object();

	obl_put_text(o, "where", r->where);
	obl_put_number(o, "cuda", r->cuda);
	obl_put_number(o, "moves", r->moves);
	obl_put_number(o, "load", r->load);
	obl_put_number(o, "moved", r->moved);
	obl_put_id(o, "successor", r->successor);
	if (r->killed)
		obl_put_flag(o, "killed", r->killed);
	if (r->from[0])
		obl_put_text(o, "from", r->from);
	return o;
}

bool obl_reservation_read(const char *text, struct obl_reservation *ret)
{
	return obl_read_with(text, reservation_fill, ret);
}

static json_t *holding_write(const struct obl_holding *part)
{
	json_t *o = json_object(), *list = json_array();
	char uuid[OB_UUID_TEXT];

	obl_put_text(o, "server", part->server);
	obl_put_hex(o, "incarnation", part->incarnation);
	obl_put_number(o, "fence", part->fence);
	obl_put_number(o, "memory", part->memory);
	for (uint32_t i = 0; i < part->n_devices; i++) {
		ob_uuid_print(part->devices[i], uuid);
		json_array_append_new(list, json_string(uuid));
	}
	json_object_set_new(o, "devices", list);
	return o;
}

char *obl_reservation_text(const struct obl_reservation *r)
{
	json_t *o = json_object(), *list = json_array();

	obl_put_id(o, "id", r->id);
	obl_put_text(o, "tenant", r->tenant);
	obl_put_text(o, "program", r->program);
	obl_put_text(o, "host", r->host);
	obl_put_text(o, "user", r->user);
	obl_put_text(o, "apart", r->apart);
	obl_put_number(o, "pid", r->pid);
	obl_put_number(o, "issued", r->issued);
	obl_put_number(o, "expires", r->expires);
	obl_put_number(o, "share", r->share);
	obl_put_number(o, "priority", r->priority);
	obl_put_number(o, "linger", r->linger_s);
	obl_put_flag(o, "exclusive", r->exclusive);
	obl_put_flag(o, "restartable", r->restartable);
	if (r->restartable || was_moved(r))
		json_object_set_new(o, "again", again_write(r));
	obl_put_number(o, "granted", r->granted);
	for (uint32_t i = 0; i < r->n_parts; i++)
		json_array_append_new(list, holding_write(&r->parts[i]));
	json_object_set_new(o, "parts", list);
	return obl_object_text(o);
}

/* ---- the queue ---- */

static bool queued_fill(const json_t *o, void *out)
{
	struct obl_queued *ret = out;
	struct obp_pool_ask *ask = &ret->ask;

	*ret = (struct obl_queued){ .since = 0 };
	return obl_get_name(o, "balancer", ret->balancer) &&
		obl_get_name(o, "tenant", ret->tenant) &&
		obl_get_number(o, "since", INT64_MAX, &ret->since) &&
		obl_get_number(o, "until", INT64_MAX, &ret->until) &&
		obl_get_id(o, "id", ask->id) &&
		obl_get_small(o, "gpus", OBP_POOL_GPUS_MAX, &ask->gpus) && ask->gpus > 0 &&
		obl_get_number(o, "memory", OBL_MEMORY_MAX, &ask->memory) &&
		obl_get_small(o, "share", OBP_SHARE_ALL, &ask->share) &&
		obl_get_small(o, "priority", 3, &ask->priority) && ask->priority > 0 &&
		obl_get_small(o, "exclusive", 1, &ask->exclusive) &&
		obl_get_small(o, "one_server", 1, &ask->one_server) &&
		obl_get_small(o, "policy", OBL_POLICY_COUNT, &ask->policy) &&
		obl_get_small(o, "cuda", 1000000, &ask->cuda) &&
		obl_get_small(o, "restartable", 1, &ask->restartable) &&
		obl_get_text(o, "where", ask->where, sizeof ask->where) &&
		obl_get_text(o, "apart", ask->apart, sizeof ask->apart) &&
		obl_get_text(o, "program", ask->program, sizeof ask->program) &&
		obl_get_text(o, "host", ask->host, sizeof ask->host) &&
		obl_get_text(o, "user", ask->user, sizeof ask->user);
}

bool obl_queued_read(const char *text, struct obl_queued *ret)
{
	return obl_read_with(text, queued_fill, ret);
}

char *obl_queued_text(const struct obl_queued *queued)
{
	const struct obp_pool_ask *ask = &queued->ask;
	json_t *o = json_object();

	obl_put_text(o, "balancer", queued->balancer);
	obl_put_text(o, "tenant", queued->tenant);
	obl_put_number(o, "since", queued->since);
	obl_put_number(o, "until", queued->until);
	obl_put_id(o, "id", ask->id);
	obl_put_number(o, "gpus", ask->gpus);
	obl_put_number(o, "memory", ask->memory);
	obl_put_number(o, "share", ask->share);
	obl_put_number(o, "priority", ask->priority);
	obl_put_number(o, "exclusive", ask->exclusive);
	obl_put_number(o, "one_server", ask->one_server);
	obl_put_number(o, "policy", ask->policy);
	obl_put_number(o, "cuda", ask->cuda);
	obl_put_number(o, "restartable", ask->restartable);
	obl_put_text(o, "where", ask->where);
	obl_put_text(o, "apart", ask->apart);
	obl_put_text(o, "program", ask->program);
	obl_put_text(o, "host", ask->host);
	obl_put_text(o, "user", ask->user);
	return obl_object_text(o);
}

/* ---- tenants, operators, events ---- */

static bool usage_fill(const json_t *o, void *out)
{
	struct obl_usage *ret = out;

	return obl_get_small(o, "gpus", UINT32_MAX, &ret->gpus) &&
		obl_get_small(o, "reservations", UINT32_MAX, &ret->sessions) &&
		obl_get_number(o, "memory", INT64_MAX, &ret->memory) &&
		obl_get_number(o, "share", INT64_MAX, &ret->share);
}

bool obl_usage_read(const char *text, struct obl_usage *ret)
{
	return obl_read_with(text, usage_fill, ret);
}

char *obl_usage_text(const struct obl_usage *usage)
{
	json_t *o = json_object();

	obl_put_number(o, "gpus", usage->gpus);
	obl_put_number(o, "reservations", usage->sessions);
	obl_put_number(o, "memory", usage->memory);
	obl_put_number(o, "share", usage->share);
	return obl_object_text(o);
}

static bool limits_fill(const json_t *o, void *out)
{
	char text[OBL_QUOTA_TEXT_MAX];

	return obl_get_text(o, "limits", text, sizeof text) && !obl_quota_parse(text, out, NULL);
}

bool obl_limits_read(const char *text, struct obl_quota *ret)
{
	return obl_read_with(text, limits_fill, ret);
}

char *obl_limits_text(const struct obl_quota *limits)
{
	char text[OBL_QUOTA_TEXT_MAX];
	json_t *o = json_object();

	obl_quota_print(limits, text, sizeof text);
	obl_put_text(o, "limits", text);
	return obl_object_text(o);
}

static bool operator_fill(const json_t *o, void *out)
{
	struct obl_operator *ret = out;

	return obl_get_flag(o, "cordoned", &ret->cordoned) &&
		obl_get_flag(o, "draining", &ret->draining) &&
		obl_get_number(o, "since", INT64_MAX, &ret->since) &&
		obl_get_number(
			o, "grace_ms", OBP_POOL_LINGER_MAX_S * UINT64_C(1000), &ret->grace_ms) &&
		obl_get_text(o, "by", ret->by, sizeof ret->by);
}

bool obl_operator_read(const char *text, struct obl_operator *ret)
{
	return obl_read_with(text, operator_fill, ret);
}

char *obl_operator_text(const struct obl_operator *state)
{
	json_t *o = json_object();

	obl_put_flag(o, "cordoned", state->cordoned);
	obl_put_flag(o, "draining", state->draining);
	obl_put_number(o, "since", state->since);
	obl_put_number(o, "grace_ms", state->grace_ms);
	obl_put_text(o, "by", state->by);
	return obl_object_text(o);
}

static bool alive_fill(const json_t *o, void *out)
{
	return obl_get_hex(o, "incarnation", out);
}

bool obl_alive_read(const char *text, uint64_t *ret_incarnation)
{
	return obl_read_with(text, alive_fill, ret_incarnation);
}

char *obl_alive_text(uint64_t incarnation)
{
	json_t *o = json_object();

	obl_put_hex(o, "incarnation", incarnation);
	return obl_object_text(o);
}

static bool event_fill(const json_t *o, void *out)
{
	struct obl_event *ret = out;

	return obl_get_number(o, "time_ms", INT64_MAX, &ret->time_ms) &&
		obl_get_text(o, "kind", ret->kind, sizeof ret->kind) &&
		obl_get_text(o, "subject", ret->subject, sizeof ret->subject) &&
		obl_get_text(o, "text", ret->text, sizeof ret->text) &&
		obl_get_small(o, "count", UINT32_MAX, &ret->count);
}

bool obl_event_read(const char *text, struct obl_event *ret)
{
	return obl_read_with(text, event_fill, ret);
}

char *obl_event_text(const struct obl_event *event)
{
	json_t *o = json_object();

	obl_put_number(o, "time_ms", event->time_ms);
	obl_put_text(o, "kind", event->kind);
	obl_put_text(o, "subject", event->subject);
	obl_put_text(o, "text", event->text);
	obl_put_number(o, "count", event->count);
	return obl_object_text(o);
}
