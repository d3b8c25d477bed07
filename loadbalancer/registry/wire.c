/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/registry/wire.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/text.h"
#include "loadbalancer/registry/alloc.h"
#include "loadbalancer/registry/base64.h"
#include "loadbalancer/registry/entries.h"

#define KEY_BYTES_MAX (OBL_PREFIX_MAX + OBL_KEY_MAX + 1) /* with the NUL that paging appends */

/* ---- requests ---- */

/* "name":"<base64 of prefix and key>" with `more` bytes of NUL at the end. */
static void put_key(
	struct ob_buf *body, const char *name, const char *prefix, const char *key, size_t more)
{
	char bytes[KEY_BYTES_MAX + 1];
	size_t size = strlen(prefix) + strlen(key);

	memset(bytes, 0, sizeof bytes);
	snprintf(bytes, sizeof bytes, "%s%s", prefix, key);
	ob_buf_printf(body, "\"%s\":\"", name);
	obl_base64_encode(body, bytes, size + more);
	ob_buf_printf(body, "\"");
}

/* The first key after those that begin with the prefix: the last byte of UTF-8 is never 255. */
static void put_range_end(struct ob_buf *body, const char *prefix)
{
	char end[KEY_BYTES_MAX + 1];
	size_t n = strlen(prefix);

	snprintf(end, sizeof end, "%s", prefix);
	end[n - 1] = (char)(end[n - 1] + 1);
	ob_buf_printf(body, "\"range_end\":\"");
	obl_base64_encode(body, end, n);
	ob_buf_printf(body, "\"");
}

static void put_change(
	struct ob_buf *body, const char *prefix, const struct obl_change *change, uint64_t lease)
{
	if (!change->value) {
		ob_buf_printf(body, "{\"request_delete_range\":{");
		put_key(body, "key", prefix, change->key, 0);
		ob_buf_printf(body, "}}");
		return;
	}
	ob_buf_printf(body, "{\"request_put\":{");
	put_key(body, "key", prefix, change->key, 0);
	ob_buf_printf(body, ",\"value\":\"");
	obl_base64_encode(body, change->value, strlen(change->value));
	ob_buf_printf(body, "\"");
	if (change->leased)
		ob_buf_printf(body, ",\"lease\":\"%" PRIu64 "\"", lease);
	ob_buf_printf(body, "}}");
}

void obl_wire_txn(
	struct ob_buf *body, const char *prefix, const struct obl_txn *txn, uint64_t lease)
{
	ob_buf_printf(body, "{\"compare\":[");
	for (uint32_t i = 0; i < txn->n_compares; i++) {
		/* The modification revision of a key that does not exist is 0. */
		ob_buf_printf(body,
			"%s{\"target\":\"MOD\",\"result\":\"EQUAL\",\"mod_revision\":\"%" PRIu64
			"\",",
			i ? "," : "", txn->compares[i].revision);
		put_key(body, "key", prefix, txn->compares[i].key, 0);
		ob_buf_printf(body, "}");
	}
	ob_buf_printf(body, "],\"success\":[");
	for (uint32_t i = 0; i < txn->n_changes; i++) {
		ob_buf_printf(body, "%s", i ? "," : "");
		put_change(body, prefix, &txn->changes[i], lease);
	}
	ob_buf_printf(body, "],\"failure\":[");
	for (uint32_t i = 0; i < txn->n_compares; i++) {
		ob_buf_printf(body, "%s{\"request_range\":{", i ? "," : "");
		put_key(body, "key", prefix, txn->compares[i].key, 0);
		ob_buf_printf(body, "}}");
	}
	ob_buf_printf(body, "]}");
}

void obl_wire_range(struct ob_buf *body, const char *prefix, const char *after, uint64_t revision,
	uint32_t limit, bool keys_only)
{
	ob_buf_printf(body, "{");
	put_key(body, "key", after ? after : prefix, "", after ? 1 : 0);
	ob_buf_printf(body, ",");
	put_range_end(body, prefix);
	ob_buf_printf(body, ",\"limit\":\"%u\"%s", limit, keys_only ? ",\"keys_only\":true" : "");
	if (revision)
		ob_buf_printf(body, ",\"revision\":\"%" PRIu64 "\"", revision);
	ob_buf_printf(body, "}");
}

void obl_wire_watch(struct ob_buf *body, const char *prefix, uint64_t start_revision)
{
	ob_buf_printf(body, "{\"create_request\":{");
	put_key(body, "key", prefix, "", 0);
	ob_buf_printf(body, ",");
	put_range_end(body, prefix);
	ob_buf_printf(body,
		",\"start_revision\":\"%" PRIu64 "\",\"progress_notify\":true,\"fragment\":true}}",
		start_revision);
}

/* ---- answers ---- */

bool obl_wire_number(const json_t *object, const char *name, uint64_t *ret)
{
	const json_t *member = json_object_get(object, name);

	*ret = 0;
	if (!member)
		return true;
	if (json_is_string(member))
		return ob_text_parse_number(json_string_value(member), 0, INT64_MAX, ret);
	if (!json_is_integer(member) || json_integer_value(member) < 0)
		return false;
	*ret = (uint64_t)json_integer_value(member);
	return true;
}

bool obl_wire_revision(const json_t *root, uint64_t *ret_revision)
{
	return obl_wire_number(json_object_get(root, "header"), "revision", ret_revision) &&
		*ret_revision > 0;
}

/*
 * A member in base64 as a string. NULL: not base64, or longer than max, or with a NUL; *ret_broken tells
 * the first from the others. Absent: "".
 */
static char *get_bytes(const json_t *object, const char *name, size_t max, bool *ret_broken)
{
	const json_t *member = json_object_get(object, name);
	size_t size = json_string_length(member), n = 0;
	char *bytes;

	*ret_broken = member && !json_is_string(member);
	if (*ret_broken)
		return NULL;
	bytes = obl_alloc(size / 4 * 3 + 1, 1);
	if (size)
		*ret_broken =
			!obl_base64_decode(json_string_value(member), size, (uint8_t *)bytes, &n);
	if (*ret_broken || n > max || strlen(bytes) != n) {
		free(bytes);
		return NULL;
	}
	return bytes;
}

void obl_kv_fini(struct obl_kv *kv)
{
	free(kv->key);
	free(kv->value);
	*kv = (struct obl_kv){ 0 };
}

static enum ob_err get_key(const json_t *kv, const char *prefix, char **ret_key)
{
	size_t n = strlen(prefix);
	bool broken;
	char *whole = get_bytes(kv, "key", n + OBL_KEY_MAX, &broken);
	enum ob_err err = OB_ERR_NONE;

	if (broken)
		return OB_ERR_PROTOCOL;
	if (!whole)
		return OB_ERR_NOT_FOUND;
	if (strncmp(whole, prefix, n) != 0)
		err = OB_ERR_PROTOCOL; /* nobody asked for it */
	else if (!whole[n] || !obl_text_fits(whole + n, OBL_KEY_MAX))
		err = OB_ERR_NOT_FOUND;
	else
		*ret_key = obl_copy_text(whole + n);
	free(whole);
	return err;
}

enum ob_err obl_wire_kv(const json_t *kv, const char *prefix, struct obl_kv *ret_kv)
{
	struct obl_kv got = { 0 };
	bool broken;
	enum ob_err err;

	if (!json_is_object(kv) || !obl_wire_number(kv, "mod_revision", &got.revision) ||
		!obl_wire_number(kv, "lease", &got.lease) || got.revision == 0)
		return OB_ERR_PROTOCOL;
	err = get_key(kv, prefix, &got.key);
	if (err != OB_ERR_NONE)
		return err;
	got.value = get_bytes(kv, "value", OBL_VALUE_MAX, &broken);
	if (got.value && !obl_text_fits(got.value, OBL_VALUE_MAX)) {
		free(got.value);
		got.value = NULL;
	}
	if (broken) {
		obl_kv_fini(&got);
		return OB_ERR_PROTOCOL;
	}
	if (!got.value) {
		ob_warn("the registry's key \"%s\" has a value that is too long or not UTF-8",
			got.key);
		got.value = obl_copy_text("");
	}
	*ret_kv = got;
	return OB_ERR_NONE;
}

/* The answer to reading one key. */
static enum ob_err get_current(
	const json_t *response, const char *prefix, const char *key, struct obl_kv *ret_kv)
{
	const json_t *range = json_object_get(response, "response_range");
	const json_t *kvs = json_object_get(range, "kvs");
	enum ob_err err;

	if (!json_is_object(range) || (kvs && json_array_size(kvs) > 1))
		return OB_ERR_PROTOCOL;
	*ret_kv = (struct obl_kv){ 0 };
	if (json_array_size(kvs) == 0) {
		ret_kv->key = obl_copy_text(key);
		return OB_ERR_NONE;
	}
	err = obl_wire_kv(json_array_get(kvs, 0), prefix, ret_kv);
	if (err == OB_ERR_NONE && strcmp(ret_kv->key, key) == 0)
		return OB_ERR_NONE;
	obl_kv_fini(ret_kv);
	return OB_ERR_PROTOCOL;
}

enum ob_err obl_wire_txn_answer(const json_t *root, const char *prefix, char *const *keys,
	uint32_t n_compares, bool *ret_succeeded, uint64_t *ret_revision,
	struct obl_kv *ret_current)
{
	const json_t *responses = json_object_get(root, "responses");
	const json_t *succeeded = json_object_get(root, "succeeded");
	uint32_t i = 0;

	if (!obl_wire_revision(root, ret_revision) || (succeeded && !json_is_boolean(succeeded)))
		return OB_ERR_PROTOCOL;
	*ret_succeeded = json_is_true(succeeded);
	if (*ret_succeeded)
		return OB_ERR_NONE;
	if (n_compares == 0 || json_array_size(responses) != n_compares)
		return OB_ERR_PROTOCOL;
	for (; i < n_compares; i++)
		if (get_current(json_array_get(responses, i), prefix, keys[i], &ret_current[i]))
			break;
	if (i == n_compares)
		return OB_ERR_NONE;
	while (i-- > 0)
		obl_kv_fini(&ret_current[i]);
	return OB_ERR_PROTOCOL;
}
