/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/dashboard/reply.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "base/clock.h"
#include "base/json.h"

#define BLOCK 65536u /* bytes that the library asks of a blob at a time */

static const char *const headers[][2] = {
	{ "Content-Security-Policy",
		"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
		"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'" },
	{ "X-Content-Type-Options", "nosniff" },
	{ "X-Frame-Options", "DENY" },
	{ "Referrer-Policy", "no-referrer" },
	{ "Cross-Origin-Opener-Policy", "same-origin" },
	{ "Cross-Origin-Resource-Policy", "same-origin" },
};

enum MHD_Result obl_reply_send(
	struct MHD_Connection *connection, unsigned status, struct MHD_Response *response)
{
	enum MHD_Result result;

	if (!response)
		return MHD_NO;
	for (unsigned i = 0; i < sizeof headers / sizeof *headers; i++)
		MHD_add_response_header(response, headers[i][0], headers[i][1]);
	result = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return result;
}

enum MHD_Result obl_reply_text(
	struct MHD_Connection *connection, const char *type, const void *text, size_t size)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(
		size, (void *)(uintptr_t)text, MHD_RESPMEM_MUST_COPY);

	if (response) {
		MHD_add_response_header(response, "Content-Type", type);
		MHD_add_response_header(response, "Cache-Control", "no-store");
	}
	return obl_reply_send(connection, MHD_HTTP_OK, response);
}

bool obl_reply_json_begin(struct obl_reply_json *reply)
{
	*reply = (struct obl_reply_json){ 0 };
	reply->file = open_memstream(&reply->text, &reply->size);
	if (!reply->file)
		return false;
	ob_json_begin(&reply->json, reply->file, OB_JSON_COMPACT);
	ob_json_object(&reply->json, NULL);
	ob_json_uint(&reply->json, "schema", 1);
	return true;
}

enum MHD_Result obl_reply_json_end(struct MHD_Connection *connection, struct obl_reply_json *reply)
{
	enum MHD_Result result = MHD_NO;

	ob_json_end(&reply->json);
	if (fclose(reply->file) == 0)
		result = obl_reply_text(connection, OBL_TYPE_JSON, reply->text, reply->size);
	free(reply->text);
	return result;
}

enum MHD_Result obl_reply_done(struct MHD_Connection *connection, const char *said)
{
	struct obl_reply_json reply;

	if (!obl_reply_json_begin(&reply))
		return MHD_NO;
	ob_json_bool(&reply.json, "done", true);
	ob_json_text(&reply.json, "text", said);
	return obl_reply_json_end(connection, &reply);
}

/* ---- errors ---- */

static struct MHD_Response *error_make(unsigned status, const char *text, const char *hint)
{
	struct MHD_Response *response = NULL;
	struct obl_reply_json body;

	if (!obl_reply_json_begin(&body))
		return NULL;
	ob_json_object(&body.json, "error");
	ob_json_uint(&body.json, "code", status);
	ob_json_text(&body.json, "text", text);
	ob_json_text(&body.json, "hint", hint);
	ob_json_end(&body.json);
	ob_json_end(&body.json);
	fputc('\n', body.file);
	if (fclose(body.file) == 0)
		response = MHD_create_response_from_buffer(
			body.size, body.text, MHD_RESPMEM_MUST_COPY);
	free(body.text);
	if (response) {
		MHD_add_response_header(response, "Content-Type", OBL_TYPE_JSON);
		MHD_add_response_header(response, "Cache-Control", "no-store");
	}
	return response;
}

enum MHD_Result obl_reply_doubtful(struct MHD_Connection *connection, const char *text)
{
	struct MHD_Response *response = error_make(MHD_HTTP_BAD_REQUEST, text,
		"send each of these headers once, as RFC 9112 has them");

	if (response)
		MHD_add_response_header(response, "Connection", "close");
	return obl_reply_send(connection, MHD_HTTP_BAD_REQUEST, response);
}

enum MHD_Result obl_reply_error(struct MHD_Connection *connection, unsigned status,
	const char *text, const char *hint, const char *allow)
{
	struct MHD_Response *response = error_make(status, text, hint);

	if (!response)
		return MHD_NO;
	if (allow)
		MHD_add_response_header(response, "Allow", allow);
	if (status == MHD_HTTP_UNAUTHORIZED)
		MHD_add_response_header(response, "WWW-Authenticate", "Bearer realm=\"Outboard\"");
	if (status == MHD_HTTP_SERVICE_UNAVAILABLE || status == MHD_HTTP_TOO_MANY_REQUESTS)
		MHD_add_response_header(response, "Retry-After", "5");
	return obl_reply_send(connection, status, response);
}

/* ---- documents and files ---- */

static bool unchanged(struct MHD_Connection *connection, const char *tag)
{
	const char *known =
		MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "If-None-Match");

	return known && strcmp(known, tag) == 0;
}

/* A document that a peer reads. */
struct reply {
	struct obl_reader reader;
	uint64_t deadline_ns;
};

static ssize_t blob_read(void *user, uint64_t at, char *to, size_t max)
{
	const struct reply *reply = user;
	const struct obl_blob *blob = reply->reader.blob;
	size_t n;

	if (!blob || ob_clock_ns() > reply->deadline_ns)
		return MHD_CONTENT_READER_END_WITH_ERROR;
	if (at >= blob->size)
		return MHD_CONTENT_READER_END_OF_STREAM;
	n = blob->size - (size_t)at < max ? blob->size - (size_t)at : max;
	memcpy(to, blob->data + at, n);
	return (ssize_t)n;
}

static void blob_done(void *user)
{
	struct reply *reply = user;

	obl_reader_leave(&reply->reader);
	free(reply);
}

/* Takes over the reference. NULL: no memory. */
static struct MHD_Response *blob_response(
	struct obl_readers *readers, struct MHD_Connection *connection, struct obl_blob *blob)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct obl_peer_key key = obl_peer_key_of(info ? info->connect_fd : -1);
	struct reply *reply = malloc(sizeof *reply);
	struct MHD_Response *response;
	size_t size = blob->size;

	if (!reply) {
		obl_blob_unref(blob);
		return NULL;
	}
	if (!obl_reader_enter(readers, &reply->reader, &key, blob)) {
		free(reply);
		return NULL;
	}
	reply->deadline_ns = ob_clock_ns() + readers->reply_s * OB_SECOND;
	response = MHD_create_response_from_callback(size, BLOCK, blob_read, reply, blob_done);
	if (!response)
		blob_done(reply);
	return response;
}

enum MHD_Result obl_reply_blob(struct obl_readers *readers, struct MHD_Connection *connection,
	const char *type, struct obl_blob *blob)
{
	struct MHD_Response *response;
	unsigned status = MHD_HTTP_OK;
	char tag[24];

	if (!blob)
		return obl_reply_error(connection, MHD_HTTP_SERVICE_UNAVAILABLE,
			"there is no memory for the document", "try again", NULL);
	snprintf(tag, sizeof tag, "\"%016llx\"", (unsigned long long)blob->hash);
	if (unchanged(connection, tag)) {
		obl_blob_unref(blob);
		status = MHD_HTTP_NOT_MODIFIED;
		response = MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
	} else {
		response = blob_response(readers, connection, blob);
	}
	if (response) {
		MHD_add_response_header(response, "Content-Type", type);
		MHD_add_response_header(response, "Cache-Control", "private, no-cache");
		MHD_add_response_header(response, "ETag", tag);
	}
	return obl_reply_send(connection, status, response);
}

enum MHD_Result obl_reply_asset(struct MHD_Connection *connection, const struct obl_asset *asset)
{
	bool same = unchanged(connection, asset->tag);
	struct MHD_Response *response = MHD_create_response_from_buffer(
		same ? 0 : asset->size, (void *)(uintptr_t)asset->data, MHD_RESPMEM_PERSISTENT);

	if (response) {
		MHD_add_response_header(response, "Content-Type", asset->type);
		MHD_add_response_header(response, "Cache-Control", "no-cache");
		MHD_add_response_header(response, "ETag", asset->tag);
	}
	return obl_reply_send(connection, same ? MHD_HTTP_NOT_MODIFIED : MHD_HTTP_OK, response);
}
