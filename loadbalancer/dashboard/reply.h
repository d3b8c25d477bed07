/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * HTTP responses with the headers that all of them have: no framing, no sniffing, no script that is
 * not a file of the page. The loop's thread.
 */
#ifndef OBL_DASHBOARD_REPLY_H
#define OBL_DASHBOARD_REPLY_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/json.h"
#include "loadbalancer/dashboard/readers.h"

#define OBL_TYPE_JSON "application/json; charset=utf-8"

/* A file of the page, embedded in the program. */
struct obl_asset {
	const char *path, *type; /* path NULL: the end of the table */
	const char *tag;         /* ETag, with quotes */
	const unsigned char *data;
	size_t size;
};

extern const struct obl_asset obl_assets[];

/*
 * Queues an error: {"schema": 1, "error": {"code": 404, "text": ..., "hint": ...}}. text: what is
 * wrong; hint: what to do. allow: the methods, for 405; else NULL.
 */
enum MHD_Result obl_reply_error(struct MHD_Connection *connection, unsigned status,
	const char *text, const char *hint, const char *allow);
/* The same for a request whose end is in doubt: 400, and the connection is closed. */
enum MHD_Result obl_reply_doubtful(struct MHD_Connection *connection, const char *text);
/*
 * Queues a document, or 304 if the request names its ETag. Takes over the reference; a blob that is
 * NULL becomes an error. A reader is disconnected when it takes longer than reply_s, or when the
 * document is taken away. The readers outlive the library's responses.
 */
enum MHD_Result obl_reply_blob(struct obl_readers *readers, struct MHD_Connection *connection,
	const char *type, struct obl_blob *blob);
enum MHD_Result obl_reply_asset(struct MHD_Connection *connection, const struct obl_asset *asset);
/*
 * A small JSON object with its "schema". begin: false: no memory, nothing to free. end: closes the
 * object and what `json` writes to, and queues it.
 */
struct obl_reply_json {
	struct ob_json json; /* for the fields */
	FILE *file;
	char *text;
	size_t size;
};

bool obl_reply_json_begin(struct obl_reply_json *reply);
enum MHD_Result obl_reply_json_end(struct MHD_Connection *connection, struct obl_reply_json *reply);
/* Queues a copy of the bytes. */
enum MHD_Result obl_reply_text(
	struct MHD_Connection *connection, const char *type, const void *text, size_t size);
/* Queues {"schema": 1, "done": true, "text": ...}; said: what was done, in words. */
enum MHD_Result obl_reply_done(struct MHD_Connection *connection, const char *said);
/* Adds the headers, queues the response and gives it up. NULL: closes the connection. */
enum MHD_Result obl_reply_send(
	struct MHD_Connection *connection, unsigned status, struct MHD_Response *response);

#endif
