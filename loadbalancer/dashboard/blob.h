/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A document as it is sent. Several readers get the same bytes, so it is shared by reference counts.
 * Made and counted by the documents (documents.h); the loop's thread.
 */
#ifndef OBL_DASHBOARD_BLOB_H
#define OBL_DASHBOARD_BLOB_H

#include <stddef.h>
#include <stdint.h>

struct obl_blob {
	unsigned refs;
	size_t *bytes;       /* of all blobs: where it is counted */
	uint64_t hash;       /* of the bytes without "time_ms" at their beginning */
	uint64_t last_event; /* when it was made */
	size_t size;
	char *data;
};

/* Returns the blob. */
struct obl_blob *obl_blob_ref(struct obl_blob *blob);
/* Frees it with the last reference. blob may be NULL. */
void obl_blob_unref(struct obl_blob *blob);

#endif
