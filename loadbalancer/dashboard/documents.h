/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * JSON documents and metrics, made for a caller and kept for a second, so that many readers cost the
 * balancer no more than one. All that exist are bounded in bytes: for a new one, those that nobody
 * reads are dropped, then readers lose theirs (readers.h). Owned by the HTTP server (web.h); the
 * loop's thread.
 */
#ifndef OBL_DASHBOARD_DOCUMENTS_H
#define OBL_DASHBOARD_DOCUMENTS_H

#include "loadbalancer/dashboard/readers.h"
#include "loadbalancer/dashboard/source.h"

#define OBL_DOCUMENT_KINDS  8u
#define OBL_DOCUMENT_EVENTS 7u  /* the last kind */
#define OBL_DOCUMENTS_KEPT  32u /* documents; further ones replace the oldest */
#define OBL_DOCUMENTS_SINCE 8u  /* of these, events after some number */
#define OBL_DOCUMENT_MS     900u
#define OBL_DOCUMENTS_BYTES (256u << 20) /* that are kept, or being read; beyond by one document */

struct obl_documents {
	const struct obl_source *source;
	struct obl_readers readers;
	size_t bytes, bytes_max;  /* of all blobs that exist */
	struct obl_blob *metrics; /* NULL: none */
	uint64_t metrics_ns;      /* when they were made */
	struct obl_kept {
		struct obl_blob *blob; /* NULL: free */
		uint64_t made_ns, since;
		unsigned kind;
		bool all;
		char tenant[OBP_POOL_NAME_MAX];
	} kept[OBL_DOCUMENTS_KEPT];
};

/* "fleet", "info", "servers", "gpus", "sessions", "queue", "quota", "events". */
extern const char *const obl_document_names[OBL_DOCUMENT_KINDS];
/* OBL_DOCUMENT_KINDS: there is none of this name. */
unsigned obl_document_kind(const char *name);

void obl_documents_init(struct obl_documents *documents, const struct obl_source *source);
void obl_documents_fini(struct obl_documents *documents);
/*
 * Returns a reference for obl_reader_enter, or to be given back by obl_blob_unref; NULL: out of
 * memory. At most OBL_DOCUMENT_MS old. since: events only, those with a higher number; 0: all.
 * Readers who wait for the same events share them.
 */
struct obl_blob *obl_documents_get(struct obl_documents *documents, const struct obl_caller *caller,
	unsigned kind, uint64_t since, uint64_t now_ns);
/* The metrics of the pool as Prometheus text, in the same way. */
struct obl_blob *obl_documents_metrics(struct obl_documents *documents, uint64_t now_ns);
/* Forgets all: after a command the next reader gets the new state. */
void obl_documents_forget(struct obl_documents *documents);

/*
 * Makes room for a blob of malloc'ed bytes, which it takes over. NULL: out of memory, among it
 * references without a reader that reach bytes_max; or data is NULL.
 */
struct obl_blob *obl_documents_blob(struct obl_documents *documents, char *data, size_t size);

#endif
