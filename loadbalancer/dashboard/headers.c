/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/dashboard/headers.h"

#include <arpa/inet.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/uuid.h"

#define API         "/api/v1/"
#define HOST_MAX    256u
#define GRACE_MAX_S 86400

/* ---- where a request ends ---- */

/* A token of RFC 9110, section 5.6.2. */
static bool is_token(const char *name)
{
	static const char characters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					 "0123456789!#$%&'*+-.^_`|~";

	return *name && !name[strspn(name, characters)];
}

/*
 * The header's own name, or one that begins with it: libmicrohttpd 0.9.75 joins a name and a value on
 * the next line.
 */
static unsigned named(const char *name, const char *wanted, bool *ret_doubtful)
{
	size_t n = strlen(wanted);

	if (strncasecmp(name, wanted, n) != 0)
		return 0;
	*ret_doubtful |= name[n] != 0;
	return 1;
}

void obl_web_framing_add(struct obl_web_framing *framing, const char *name, const char *value)
{
	unsigned coding = named(name, "Transfer-Encoding", &framing->doubtful);

	framing->codings += coding;
	framing->lengths += named(name, "Content-Length", &framing->doubtful);
	framing->hosts += strcasecmp(name, "Host") == 0;
	framing->doubtful |= !is_token(name) || (value && strpbrk(value, "\r\n")) ||
		(coding && (!value || strcasecmp(value, "chunked") != 0));
}

enum ob_err obl_web_framing_check(
	const struct obl_web_framing *framing, const char *version, struct ob_cause *ret_cause)
{
	bool new = strcmp(version, "HTTP/1.1") == 0;
	const char *why = NULL;

	if (framing->doubtful)
		why = "a header is malformed, or Transfer-Encoding is not 'chunked'";
	else if (framing->lengths + framing->codings > 1)
		why = "there are several Content-Length or Transfer-Encoding headers";
	else if (framing->codings && !new)
		why = "Transfer-Encoding needs HTTP/1.1";
	else if (framing->hosts > 1 || (new && !framing->hosts))
		why = "there must be one Host header";
	return why ? ob_cause_set(ret_cause, OB_ERR_ARGUMENT, "%s", why) : OB_ERR_NONE;
}

/* ---- headers ---- */

const char *obl_web_token_text(const char *authorization)
{
	static const char scheme[] = "Bearer ";

	if (!authorization || strncasecmp(authorization, scheme, sizeof scheme - 1) != 0)
		return NULL;
	authorization += sizeof scheme - 1;
	authorization += strspn(authorization, " ");
	return *authorization ? authorization : NULL;
}

bool obl_web_host_own(const char *host)
{
	char name[HOST_MAX], own[HOST_MAX] = "";
	struct in6_addr address;
	size_t length;

	if (!host || strlen(host) >= sizeof name)
		return false;
	if (host[0] == '[') {
		length = strcspn(host + 1, "]");
		snprintf(name, sizeof name, "%.*s", (int)length, host + 1);
		return inet_pton(AF_INET6, name, &address) == 1;
	}
	length = strcspn(host, ":");
	snprintf(name, sizeof name, "%.*s", (int)length, host);
	gethostname(own, sizeof own - 1);
	return strcasecmp(name, "localhost") == 0 || inet_pton(AF_INET, name, &address) == 1 ||
		(own[0] && strcasecmp(name, own) == 0);
}

bool obl_web_origin_own(const char *origin, const char *host)
{
	const char *after;

	if (!origin)
		return true;
	after = strstr(origin, "://");
	return after && host && strcasecmp(after + 3, host) == 0;
}

/* ---- commands ---- */

static bool name_copy(const char *from, size_t size, char ret[OBP_POOL_NAME_MAX])
{
	if (!size || size >= OBP_POOL_NAME_MAX || *from == '.')
		return false;
	for (size_t i = 0; i < size; i++) {
		char c = from[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
			c != '.' && c != '_' && c != '-')
			return false;
	}
	memcpy(ret, from, size);
	ret[size] = 0;
	return true;
}

bool obl_web_order_find(const char *path, struct obl_web_order *ret)
{
	static const struct {
		const char *list, *verb;
	} verbs[] = { { "servers/", "cordon" }, { "servers/", "uncordon" }, { "servers/", "drain" },
		{ "sessions/", "kill" }, { "sessions/", "move" } };
	const char *end;

	memset(ret, 0, sizeof *ret);
	if (strncmp(path, API, sizeof API - 1) != 0)
		return false;
	path += sizeof API - 1;
	for (unsigned i = 0; i < sizeof verbs / sizeof *verbs; i++) {
		size_t n = strlen(verbs[i].list);

		if (strncmp(path, verbs[i].list, n) != 0)
			continue;
		end = strchr(path + n, '/');
		if (end && strcmp(end + 1, verbs[i].verb) == 0) {
			ret->verb = verbs[i].verb;
			return name_copy(path + n, (size_t)(end - path) - n, ret->target);
		}
	}
	return false;
}

static bool member_take(const char *key, const json_t *value, struct obl_web_order *order)
{
	char server[OBP_POOL_NAME_MAX];

	if (strcmp(key, "server") == 0 && strcmp(order->verb, "move") == 0) {
		if (!json_is_string(value) ||
			!name_copy(json_string_value(value), json_string_length(value), server))
			return false;
		snprintf(order->argument, sizeof order->argument, "%s", server);
		return true;
	}
	if (strcmp(key, "grace_s") == 0 && strcmp(order->verb, "drain") == 0) {
		json_int_t seconds = json_is_integer(value) ? json_integer_value(value) : -1;

		if (seconds < 0 || seconds > GRACE_MAX_S)
			return false;
		snprintf(order->argument, sizeof order->argument, "%lld", (long long)seconds);
		return true;
	}
	return false;
}

enum ob_err obl_web_body_read(
	const char *body, size_t size, struct obl_web_order *order, struct ob_cause *ret_cause)
{
	json_t *root, *value;
	bool object, known = true;
	const char *key;

	if (!size)
		return OB_ERR_NONE;
	root = json_loadb(body, size, JSON_REJECT_DUPLICATES, NULL);
	object = json_is_object(root);
	json_object_foreach(root, key, value) known = known && member_take(key, value, order);
	json_decref(root);
	if (!object)
		return ob_cause_set(ret_cause, OB_ERR_ARGUMENT, "the body is not a JSON object");
	if (!known)
		return ob_cause_set(ret_cause, OB_ERR_ARGUMENT,
			"the body has a member that this command does not know, or its value is "
			"out of range");
	return OB_ERR_NONE;
}

/* ---- GPUs ---- */

unsigned obl_web_gpus_read(const char *list, uint8_t (*ret_uuids)[16], unsigned max)
{
	unsigned n = 0;

	while (list && *list) {
		size_t size = strcspn(list, ",");
		char text[64];

		if (n == max || size >= sizeof text)
			return max + 1;
		memcpy(text, list, size);
		text[size] = 0;
		if (!ob_uuid_parse(text, ret_uuids[n]))
			return max + 1;
		n++;
		list += size;
		list += *list == ',';
	}
	return n;
}
