/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Request handling of the web server of `outboard rqa serve`. A request can only read, or sweep the
 * one folder given at the start into the one output folder; no request contains a path. Requests
 * from other sites are refused, by their Host (names that could be rebound), their Origin, and the
 * lack of a header that forms cannot send.
 *
 *     GET  /  /app.css  /app.js              the page
 *     GET  /api/setup                        folder, presets, measures, options
 *     GET  /api/events                       server-sent events: phase, reading, batch_started,
 *                                            progress_update, log, batch_completed, gpu_stats
 *     POST /api/plan  /api/start             a form; returns the number of rows, or an error that
 *                                            names the field; start starts the sweep
 *     POST /api/stop
 *     GET  /api/lists  /api/results  /api/heat.png
 *     GET  /download/results.csv  summary.csv  failed.csv  sweep.json
 */
#ifndef OBX_RQA_PAGE_H
#define OBX_RQA_PAGE_H

#include <microhttpd.h>

#include "compute/command/rqa/device.h"
#include "compute/command/rqa/job.h"

#define OBX_PAGE_BODY_MAX   16384
#define OBX_PAGE_FIELDS_MAX 64

struct obx_page {
	struct obx_job job;
	/* host_name: another name by which browsers may access the server; NULL: none */
	const char *folder, *out, *pattern, *host_name;
	struct obx_device_shared device;
};

bool obx_page_init(struct obx_page *page, const char *folder, const char *out);
void obx_page_fini(struct obx_page *page);
/* Callbacks for libmicrohttpd; cls is the page. */
enum MHD_Result obx_page_answer(void *cls, struct MHD_Connection *connection, const char *url,
	const char *method, const char *version, const char *data, size_t *data_size, void **state);
void obx_page_done(void *cls, struct MHD_Connection *connection, void **state,
	enum MHD_RequestTerminationCode code);
/*
 * Whether a Host header is one that another site cannot make a browser send: localhost, an IP
 * address, the machine's own name, host_name.
 */
bool obx_page_host_allowed(const struct obx_page *page, const char *host);

#endif
