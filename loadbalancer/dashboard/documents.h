/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * JSON documents as they are sent: shared by reference counts, because several readers get the same
 * bytes, and kept for a second, so that many readers cost the balancer no more than one. Owned by
 * the HTTP server (web.h); the loop's thread.
 */
#ifndef OBL_DASHBOARD_DOCUMENTS_H
#define OBL_DASHBOARD_DOCUMENTS_H

#include "loadbalancer/dashboard/source.h"

#define OBL_DOCUMENT_KINDS  8u
#define OBL_DOCUMENT_EVENTS 7u  /* the last kind */
#define OBL_DOCUMENTS_KEPT  32u /* documents; further ones replace the oldest */
#define OBL_DOCUMENTS_SINCE 8u  /* of these, events after some number */
#define OBL_DOCUMENT_MS     900u
#define OBL_DOCUMENTS_BYTES (256u << 20) /* that are kept, or held by peers that read slowly */

struct obl_blob {
	unsigned refs;
	size_t *bytes;       /* of all blobs: where it is counted */
	uint64_t hash;       /* of the bytes without "time_ms" at their beginning */
	uint64_t last_event; /* when it was made */
	size_t size;
	char *data;
};

struct obl_documents {
	const struct obl_source *source;
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
 * Returns a reference that the caller gives back by obl_blob_unref; NULL: out of memory, or beyond
 * bytes_max. At most OBL_DOCUMENT_MS old, but beyond bytes_max the last one that was made. since:
 * events only, those with a higher number; 0: all. Readers who wait for the same events share them.
 */
struct obl_blob *obl_documents_get(struct obl_documents *documents, const struct obl_caller *caller,
	unsigned kind, uint64_t since, uint64_t now_ns);
/* The metrics of the pool as Prometheus text, in the same way. */
struct obl_blob *obl_documents_metrics(struct obl_documents *documents, uint64_t now_ns);
/* Forgets all: after a command the next reader gets the new state. */
void obl_documents_forget(struct obl_documents *documents);

/* Takes over malloc'ed bytes; frees them and returns NULL if there is no memory, or beyond the limit. */
struct obl_blob *obl_blob_new(struct obl_documents *documents, char *data, size_t size);
struct obl_blob *obl_blob_ref(struct obl_blob *blob);
void obl_blob_unref(struct obl_blob *blob);

#endif
