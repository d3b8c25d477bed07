/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/dashboard/documents.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "loadbalancer/dashboard/exposition.h"

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

/* Gives up a document that nobody reads. */
static void drop_unread(struct obl_blob **kept)
{
	if (!*kept || (*kept)->refs > 1)
		return;
	obl_blob_unref(*kept);
	*kept = NULL;
}

static bool full(const struct obl_documents *documents)
{
	return documents->bytes >= documents->bytes_max;
}

/* False: the bytes of blobs have reached their limit, and no reader has one to lose. */
static bool room_make(struct obl_documents *documents)
{
	while (full(documents)) {
		for (unsigned i = 0; i < OBL_DOCUMENTS_KEPT; i++)
			drop_unread(&documents->kept[i].blob);
		drop_unread(&documents->metrics);
		if (full(documents) && !obl_readers_take(&documents->readers))
			return false;
	}
	return true;
}

struct obl_blob *obl_documents_blob(struct obl_documents *documents, char *data, size_t size)
{
	struct obl_blob *blob = data && room_make(documents) ? malloc(sizeof *blob) : NULL;

	if (!blob) {
		free(data);
		return NULL;
	}
	*blob = (struct obl_blob){ .refs = 1,
		.bytes = &documents->bytes,
		.hash = hash_of(data, size),
		.size = size,
		.data = data };
	documents->bytes += size;
	return blob;
}

/* ---- what is kept ---- */

void obl_documents_init(struct obl_documents *documents, const struct obl_source *source)
{
	memset(documents, 0, sizeof *documents);
	documents->source = source;
	documents->bytes_max = OBL_DOCUMENTS_BYTES;
	documents->readers.reply_s = OBL_REPLY_S;
}

void obl_documents_forget(struct obl_documents *documents)
{
	for (unsigned i = 0; i < OBL_DOCUMENTS_KEPT; i++) {
		obl_blob_unref(documents->kept[i].blob);
		documents->kept[i].blob = NULL;
	}
	obl_blob_unref(documents->metrics);
	documents->metrics = NULL;
}

void obl_documents_fini(struct obl_documents *documents)
{
	obl_documents_forget(documents);
}

static struct obl_blob *document_make(struct obl_documents *documents,
	const struct obl_caller *caller, unsigned kind, uint64_t since)
{
	const struct obl_source *source = documents->source;
	uint64_t last = source->last_event(source->user);
	struct obl_blob *blob;
	char *data = NULL;
	size_t size = 0;

	if (!source->document(source->user, caller, obl_document_names[kind], since, &data, &size))
		return NULL;
	blob = obl_documents_blob(documents, data, size);
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
	place->blob = document_make(documents, caller, kind, since);
	return place->blob ? obl_blob_ref(place->blob) : NULL;
}

struct obl_blob *obl_documents_metrics(struct obl_documents *documents, uint64_t now_ns)
{
	struct ob_buf text;

	if (documents->metrics && now_ns - documents->metrics_ns < OBL_DOCUMENT_MS * OB_MS)
		return obl_blob_ref(documents->metrics);
	obl_blob_unref(documents->metrics);
	documents->metrics = NULL;
	documents->metrics_ns = now_ns;
	ob_buf_init(&text, OBL_EXPOSITION_MAX);
	obl_exposition_write(documents->source, &text);
	if (text.failed || !text.data) {
		ob_buf_fini(&text);
		return NULL;
	}
	documents->metrics = obl_documents_blob(documents, (char *)text.data, text.size);
	return documents->metrics ? obl_blob_ref(documents->metrics) : NULL;
}
