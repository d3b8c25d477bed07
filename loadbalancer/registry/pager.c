/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/registry/pager.h"

#include <stdio.h>

#include "loadbalancer/registry/alloc.h"
#include "loadbalancer/registry/etcd_error.h"

struct pager {
	struct obl_calls *calls;
	struct obl_pager_user user;
	char base[OBL_PREFIX_MAX + 1], prefix[OBL_PREFIX_MAX + OBL_KEY_MAX + 1];
	char last[OBL_PREFIX_MAX + OBL_KEY_MAX + 1]; /* the last key of the page before; "": none */
	uint64_t revision, started_ns;
	uint32_t n, begins;
	bool begun; /* the user has been told */
	size_t bytes;
};

static void read_page(struct pager *pager);

static void begin(struct pager *pager)
{
	pager->begins++;
	pager->last[0] = 0;
	pager->revision = 0;
	pager->n = 0;
	pager->bytes = 0;
	pager->begun = false;
}

static void end(struct pager *pager, const struct ob_cause *cause)
{
	struct pager copy = *pager;

	free(pager);
	copy.user.done(copy.user.user, cause ? cause->code : OB_ERR_NONE, cause, copy.revision,
		copy.started_ns);
}

static void end_broken(struct pager *pager, enum ob_err err, const char *what)
{
	struct ob_cause cause;

	ob_cause_set(
		&cause, err, "etcd's list of the keys %s cannot be used: %s", pager->prefix, what);
	end(pager, &cause);
}

/* One key of a page. NULL: it is valid. */
static const char *take_kv(struct pager *pager, const json_t *member)
{
	char key[sizeof pager->last];
	struct obl_kv kv;
	enum ob_err err = obl_wire_kv(member, pager->base, &kv);

	if (err == OB_ERR_NOT_FOUND)
		return NULL;
	if (err != OB_ERR_NONE)
		return "it has a damaged entry";
	if (kv.revision > pager->revision) {
		obl_kv_fini(&kv);
		return "an entry is newer than the list";
	}
	snprintf(key, sizeof key, "%s%s", pager->base, kv.key);
	if (strcmp(key, pager->last) <= 0) {
		obl_kv_fini(&kv);
		return "it is not in order";
	}
	memcpy(pager->last, key, sizeof key);
	pager->n++;
	pager->bytes += strlen(kv.value);
	pager->user.kv(pager->user.user, &kv);
	return pager->n > OBL_KEYS_MAX || pager->bytes > OBL_KEYS_BYTES ? "it is too long" : NULL;
}

/* NULL: the page is valid. */
static const char *take_page(struct pager *pager, const json_t *root, bool *ret_more)
{
	const json_t *kvs = json_object_get(root, "kvs"), *more = json_object_get(root, "more");
	char before[sizeof pager->last];
	uint64_t revision;
	size_t i;

	if (!obl_wire_revision(root, &revision) || (kvs && !json_is_array(kvs)))
		return "it has no revision, or is not a list";
	if (!pager->revision)
		pager->revision = revision;
	if (!pager->begun)
		pager->user.begin(pager->user.user);
	pager->begun = true;
	memcpy(before, pager->last, sizeof before);
	for (i = 0; i < json_array_size(kvs); i++) {
		const char *wrong = take_kv(pager, json_array_get(kvs, i));

		if (wrong)
			return wrong;
	}
	*ret_more = json_is_true(more);
	if (*ret_more && strcmp(pager->last, before) == 0)
		return "its pages do not advance";
	return NULL;
}

static void page_done(void *user, const struct obl_reply *reply)
{
	struct pager *pager = user;
	const char *wrong;
	bool more = false;

	if (reply->code == OBL_GRPC_OUT_OF_RANGE && pager->begins < OBL_PAGE_BEGINS) {
		begin(pager);
		read_page(pager);
		return;
	}
	if (reply->err != OB_ERR_NONE) {
		end(pager, reply->cause);
		return;
	}
	pager->started_ns = reply->started_ns;
	wrong = take_page(pager, reply->root, &more);
	if (wrong)
		end_broken(pager, strstr(wrong, "long") ? OB_ERR_LIMIT : OB_ERR_PROTOCOL, wrong);
	else if (more)
		read_page(pager);
	else
		end(pager, NULL);
}

static void read_page(struct pager *pager)
{
	struct ob_buf body;

	ob_buf_init(&body, OBL_SMALL_MAX);
	obl_wire_range(&body, pager->prefix, pager->last[0] ? pager->last : NULL, pager->revision,
		OBL_PAGE_KEYS, false);
	obl_calls_start(pager->calls, OBL_CALL_REPEAT, "/v3/kv/range", &body, OBL_PAGE_MAX,
		page_done, pager);
}

void obl_pager_start(struct obl_calls *calls, const char *base, const char *prefix,
	const struct obl_pager_user *user)
{
	struct pager *pager = obl_alloc(1, sizeof *pager);

	pager->calls = calls;
	pager->user = *user;
	snprintf(pager->base, sizeof pager->base, "%s", base);
	snprintf(pager->prefix, sizeof pager->prefix, "%s%s", base, prefix);
	begin(pager);
	read_page(pager);
}
