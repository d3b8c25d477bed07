/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/dashboard/documents.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"

const char *const obl_document_names[OBL_DOCUMENT_KINDS] = { "fleet", "info", "servers", "gpus",
	"sessions", "queue", "quota", "events" };

unsigned obl_document_kind(const char *name)
{
	unsigned kind = 0;

	while (kind < OBL_DOCUMENT_KINDS && strcmp(name, obl_document_names[kind]) != 0)
		kind++;
	return kind;
}

/* ---- blobs ---- */

/* The hash leaves out the document's time, with which each would be different. */
static uint64_t hash_of(const char *data, size_t size)
{
	static const char start[] = "{\"schema\":1,\"time_ms\":";
	size_t skip = 0;

	if (size > sizeof start && memcmp(data, start, sizeof start - 1) == 0)
		for (skip = sizeof start - 1;
			skip < size && data[skip] >= '0' && data[skip] <= '9';)
			skip++;
	return ob_hash_words(OB_HASH_START, data + skip, size - skip);
}

struct obl_blob *obl_blob_new(char *data, size_t size)
{
	struct obl_blob *blob = data ? malloc(sizeof *blob) : NULL;

	if (!blob) {
		free(data);
		return NULL;
	}
	*blob = (struct obl_blob){
		.refs = 1, .hash = hash_of(data, size), .size = size, .data = data
	};
	return blob;
}

struct obl_blob *obl_blob_ref(struct obl_blob *blob)
{
	blob->refs++;
	return blob;
}

void obl_blob_unref(struct obl_blob *blob)
{
	if (!blob || --blob->refs)
		return;
	free(blob->data);
	free(blob);
}

/* ---- what is kept ---- */

void obl_documents_init(struct obl_documents *documents, const struct obl_source *source)
{
	memset(documents, 0, sizeof *documents);
	documents->source = source;
}

void obl_documents_forget(struct obl_documents *documents)
{
	for (unsigned i = 0; i < OBL_DOCUMENTS_KEPT; i++) {
		obl_blob_unref(documents->kept[i].blob);
		documents->kept[i].blob = NULL;
	}
}

void obl_documents_fini(struct obl_documents *documents)
{
	obl_documents_forget(documents);
}

static struct obl_blob *document_make(const struct obl_source *source,
	const struct obl_caller *caller, unsigned kind, uint64_t since)
{
	uint64_t last = source->last_event(source->user);
	struct obl_blob *blob;
	char *data = NULL;
	size_t size = 0;

	if (!source->document(source->user, caller, obl_document_names[kind], since, &data, &size))
		return NULL;
	blob = obl_blob_new(data, size);
	if (blob)
		blob->last_event = last;
	return blob;
}

/* Documents in which each tenant sees something else. */
static bool personal(unsigned kind)
{
	const char *name = obl_document_names[kind];

	return strcmp(name, "info") != 0 && strcmp(name, "servers") != 0 &&
		strcmp(name, "gpus") != 0;
}

/* Callers who see the same get the same document. */
static bool same(
	const struct obl_kept *kept, const struct obl_caller *caller, unsigned kind, uint64_t since)
{
	if (!kept->blob || kept->kind != kind || kept->since != since)
		return false;
	return !personal(kind) ||
		(kept->all == caller->all &&
			(caller->all || strcmp(kept->tenant, caller->tenant) == 0));
}

/* True if its place is better taken than the other one's: the documents of all stay longest. */
static bool poorer(const struct obl_kept *kept, const struct obl_kept *other)
{
	if (!kept->blob || !other->blob)
		return other->blob != NULL;
	if (personal(kept->kind) != personal(other->kind))
		return personal(kept->kind);
	return kept->made_ns < other->made_ns;
}

struct obl_blob *obl_documents_get(struct obl_documents *documents, const struct obl_caller *caller,
	unsigned kind, uint64_t since, uint64_t now_ns)
{
	/* Numbers that a reader makes up replace each other only. */
	unsigned first = since ? OBL_DOCUMENTS_KEPT - OBL_DOCUMENTS_SINCE : 0;
	unsigned end = since ? OBL_DOCUMENTS_KEPT : OBL_DOCUMENTS_KEPT - OBL_DOCUMENTS_SINCE;
	struct obl_kept *place = &documents->kept[first];

	for (unsigned i = first; i < end; i++) {
		struct obl_kept *kept = &documents->kept[i];

		if (same(kept, caller, kind, since)) {
			if (now_ns - kept->made_ns < OBL_DOCUMENT_MS * OB_MS)
				return obl_blob_ref(kept->blob);
			place = kept;
			break;
		}
		if (poorer(kept, place))
			place = kept;
	}
	obl_blob_unref(place->blob);
	*place = (struct obl_kept){
		.kind = kind, .since = since, .all = caller->all, .made_ns = now_ns
	};
	memcpy(place->tenant, caller->tenant, sizeof place->tenant);
	place->blob = document_make(documents->source, caller, kind, since);
	return place->blob ? obl_blob_ref(place->blob) : NULL;
}
