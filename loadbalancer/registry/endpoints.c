/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/registry/endpoints.h"

#include <stdio.h>
#include <string.h>

static enum ob_err bad_url(struct ob_cause *ret_cause, const char *text, const char *why)
{
	return ob_cause_set(ret_cause, OB_ERR_URL,
		"\"%.200s\" is no list of etcd's addresses: %s; an example is "
		"etcd:http://a:2379,http://b:2379,http://c:2379",
		text, why);
}

/* A host with an optional port and no path, without white space, user or query. */
static bool is_address(const char *text, size_t size)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789.-_:[]";

	for (size_t i = 0; i < size; i++)
		if (!strchr(allowed, text[i]))
			return false;
	return size > 0;
}

static enum ob_err parse_one(const char *text, const char *one, size_t size,
	struct obl_endpoints *endpoints, struct ob_cause *ret_cause)
{
	size_t scheme = size > 8 && strncmp(one, "https://", 8) == 0 ? 8
		: size > 7 && strncmp(one, "http://", 7) == 0        ? 7
								     : 0;

	if (endpoints->n == OBL_ENDPOINTS_MAX)
		return bad_url(ret_cause, text, "it has more than 16 addresses");
	if (size > scheme && one[size - 1] == '/')
		size--;
	if (size > OBL_ENDPOINT_URL_MAX)
		return bad_url(ret_cause, text, "an address is too long");
	if (!scheme || !is_address(one + scheme, size - scheme))
		return bad_url(ret_cause, text,
			"an address is http:// or https:// with a host and a port");
	if (endpoints->n && (scheme == 8) != (endpoints->list[0].url[4] == 's'))
		return bad_url(ret_cause, text, "http and https are mixed");
	memcpy(endpoints->list[endpoints->n].url, one, size);
	endpoints->n++;
	return OB_ERR_NONE;
}

enum ob_err obl_endpoints_parse(
	const char *text, uint64_t seed, struct obl_endpoints *ret, struct ob_cause *ret_cause)
{
	struct obl_endpoints endpoints = { .budget = OBL_RETRY_PER_SECOND, .seed = seed | 1 };
	const char *at = text;

	for (;;) {
		size_t size = strcspn(at, ",");
		enum ob_err err = parse_one(text, at, size, &endpoints, ret_cause);

		if (err != OB_ERR_NONE)
			return err;
		if (!at[size])
			break;
		at += size + 1;
	}
	endpoints.current = (uint32_t)(seed % endpoints.n);
	*ret = endpoints;
	return OB_ERR_NONE;
}

/* xorshift64 (Marsaglia 2003): from 0 to below 1. */
static double jitter(struct obl_endpoints *endpoints)
{
	endpoints->seed ^= endpoints->seed << 13;
	endpoints->seed ^= endpoints->seed >> 7;
	endpoints->seed ^= endpoints->seed << 17;
	return (double)(endpoints->seed >> 11) * 0x1p-53;
}

void obl_endpoints_ok(struct obl_endpoints *endpoints, uint32_t i)
{
	endpoints->list[i].failures = 0;
	endpoints->list[i].avoid_until = 0;
}

void obl_endpoints_failed(struct obl_endpoints *endpoints, uint32_t i, uint64_t now)
{
	struct obl_endpoint *failed = &endpoints->list[i];
	uint64_t wait = OBL_BACKOFF_FIRST_NS << (failed->failures < 6 ? failed->failures : 6);
	uint32_t best = endpoints->current;

	/* Calls that were sent before the last failure: they are no further ones. */
	if (now < failed->avoid_until)
		return;
	if (wait > OBL_BACKOFF_MAX_NS)
		wait = OBL_BACKOFF_MAX_NS;
	/* Half to all of it, so that balancers do not come back together. */
	failed->avoid_until = now + wait / 2 + (uint64_t)((double)(wait / 2) * jitter(endpoints));
	failed->failures++;
	if (i != endpoints->current)
		return;
	for (uint32_t step = 1; step < endpoints->n; step++) {
		uint32_t next = (i + step) % endpoints->n;

		if (endpoints->list[next].avoid_until <= now) {
			best = next;
			break;
		}
		if (endpoints->list[next].avoid_until < endpoints->list[best].avoid_until)
			best = next;
	}
	endpoints->current = best;
}

uint64_t obl_endpoints_when(const struct obl_endpoints *endpoints, uint64_t now)
{
	uint64_t when = endpoints->list[endpoints->current].avoid_until;

	return when > now ? when : now;
}

void obl_endpoints_called(struct obl_endpoints *endpoints)
{
	endpoints->budget += OBL_RETRY_SHARE;
	if (endpoints->budget > OBL_RETRY_SAVED_MAX)
		endpoints->budget = OBL_RETRY_SAVED_MAX;
}

bool obl_endpoints_retry(struct obl_endpoints *endpoints, uint64_t now)
{
	double passed = (double)(now - endpoints->budget_ns) / (double)OB_SECOND;

	endpoints->budget_ns = now;
	endpoints->budget += (passed > 10 ? 10 : passed) * OBL_RETRY_PER_SECOND;
	if (endpoints->budget > OBL_RETRY_SAVED_MAX)
		endpoints->budget = OBL_RETRY_SAVED_MAX;
	if (endpoints->budget < 1)
		return false;
	endpoints->budget -= 1;
	return true;
}
