/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "compute/command/rqa/page.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/text.h"
#include "compute/command/rqa/format.h"
#include "compute/command/rqa/form.h"
#include "compute/command/rqa/results.h"
#include "compute/command/rqa/stream.h"

#define HOST_BYTES 256
#define ROWS_USUAL 50
#define HEAT_USUAL 640u
#define MEAN_OVER  "Outboard-Mean-Over"

struct request {
	char body[OBX_PAGE_BODY_MAX + 1];
	size_t size;
	bool too_long;
};

bool obx_page_init(struct obx_page *page, const char *folder, const char *out)
{
	memset(page, 0, sizeof *page);
	page->folder = folder;
	page->out = out;
	page->pattern = "*.csv";
	obx_device_shared_init(&page->device);
	return obx_job_init(&page->job);
}

void obx_page_fini(struct obx_page *page)
{
	obx_job_fini(&page->job);
	obx_device_shared_fini(&page->device);
}

bool obx_page_host_allowed(const struct obx_page *page, const char *host)
{
	char name[HOST_BYTES], own[HOST_BYTES] = "";
	struct in6_addr address;
	size_t length;

	if (!host || strlen(host) >= sizeof name)
		return false;
	if (host[0] == '[') {
		length = strcspn(host + 1, "]");
		snprintf(name, sizeof name, "%.*s", (int)length, host + 1);
		return inet_pton(AF_INET6, name, &address) == 1;
	}
	length = strcspn(host, ":");
	snprintf(name, sizeof name, "%.*s", (int)length, host);
	gethostname(own, sizeof own - 1);
	return strcasecmp(name, "localhost") == 0 || inet_pton(AF_INET, name, &address) == 1 ||
		(own[0] && strcasecmp(name, own) == 0) ||
		(page->host_name && strcasecmp(name, page->host_name) == 0);
}

/* ---- answers ---- */

static enum MHD_Result send_response(struct MHD_Connection *connection, unsigned status,
	const char *type, struct MHD_Response *response)
{
	enum MHD_Result result;

	if (!response)
		return MHD_NO;
	MHD_add_response_header(response, "Content-Type", type);
	MHD_add_response_header(response, "Content-Security-Policy",
		"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
		"connect-src 'self'; "
		"base-uri 'none'; form-action 'none'; "
		"frame-ancestors 'none'");
	MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
	MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
	MHD_add_response_header(response, "Cache-Control", "no-store");
	result = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return result;
}

/* Takes ownership of the text, which was allocated with malloc. */
static enum MHD_Result send_text(struct MHD_Connection *connection, unsigned status,
	const char *type, char *text, size_t size)
{
	return send_response(connection, status, type,
		MHD_create_response_from_buffer(size, text, MHD_RESPMEM_MUST_FREE));
}

static enum MHD_Result send_error(
	struct MHD_Connection *connection, unsigned status, const char *field, const char *error)
{
	char *text = NULL;
	size_t size = 0;
	FILE *memory = open_memstream(&text, &size);
	struct ob_json json;

	if (!memory)
		return MHD_NO;
	ob_json_begin(&json, memory, OB_JSON_COMPACT);
	ob_json_object(&json, NULL);
	ob_json_text(&json, "field", field);
	ob_json_text(&json, "error", error);
	ob_json_end(&json);
	putc('\n', memory);
	fclose(memory);
	return send_text(connection, status, "application/json", text, size);
}

static void name_json(struct ob_json *json, const char *name, const char *what)
{
	ob_json_object(json, NULL);
	ob_json_text(json, "name", name);
	ob_json_text(json, "what", what);
	ob_json_end(json);
}

static enum MHD_Result answer_setup(struct obx_page *page, struct MHD_Connection *connection)
{
	char *text = NULL;
	size_t size = 0;
	FILE *memory = open_memstream(&text, &size);
	struct obx_files files = { 0 };
	struct obx_error error;
	struct ob_json json;

	if (!memory)
		return MHD_NO;
	obx_files_list(&files, page->folder, page->pattern, page->out, &error);
	ob_json_begin(&json, memory, OB_JSON_COMPACT);
	ob_json_object(&json, NULL);
	ob_json_text(&json, "folder", page->folder);
	ob_json_text(&json, "out", page->out);
	ob_json_text(&json, "version", OB_VERSION);
	ob_json_uint(&json, "files", files.count);
	obx_files_fini(&files);
	ob_json_array(&json, "options");
	obx_setup_json(&json);
	ob_json_end(&json);
	ob_json_array(&json, "presets");
	for (unsigned i = 0; i < OBK_RQA_PRESET_COUNT; i++)
		name_json(&json, obk_rqa_preset_name(i), obk_rqa_preset_what(i));
	ob_json_end(&json);
	ob_json_array(&json, "measures");
	for (unsigned i = 0; i < OBK_RQA_MEASURE_COUNT; i++)
		name_json(&json, obk_rqa_measure_name(i), obk_rqa_measure_what(i));
	ob_json_end(&json);
	pthread_mutex_lock(&page->job.lock);
	ob_json_text(&json, "phase", obx_job_phase_name(page->job.phase));
	pthread_mutex_unlock(&page->job.lock);
	ob_json_end(&json);
	putc('\n', memory);
	fclose(memory);
	return send_text(connection, MHD_HTTP_OK, "application/json", text, size);
}

static enum MHD_Result answer_events(struct obx_page *page, struct MHD_Connection *connection)
{
	const char *last =
		MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Last-Event-ID");
	uint64_t after = 0;

	if (last && !ob_text_parse_number(last, 0, UINT64_MAX >> 1, &after))
		after = 0;
	return send_response(connection, MHD_HTTP_OK, "text/event-stream",
		obx_stream_new(&page->job, &page->device, after));
}

/* Handles /api/plan and /api/start, which have the same form. */
static enum MHD_Result answer_form(struct obx_page *page, struct MHD_Connection *connection,
	struct request *request, bool start)
{
	struct obx_sweep *sweep = obx_sweep_new();
	char field[OBX_FORM_FIELD_MAX] = "", *text = NULL;
	struct obx_error error = { "out of memory" };
	struct obx_files files = { 0 };
	uint64_t combinations, count;
	struct ob_json json;
	size_t size = 0;
	FILE *memory;

	if (sweep) {
		sweep->folder = strdup(page->folder);
		sweep->pattern = strdup(page->pattern);
	}
	if (!sweep || !sweep->folder || !sweep->pattern ||
		!obx_form_sweep(request->body, page->out, sweep, field, &error) ||
		!obx_files_list(&files, page->folder, page->pattern, page->out, &error)) {
		obx_sweep_free(sweep);
		/* an invalid form sent to /api/plan is a normal result, with status 200 */
		return send_error(
			connection, start ? MHD_HTTP_BAD_REQUEST : MHD_HTTP_OK, field, error.text);
	}
	combinations = obx_grid_combinations(&sweep->grid);
	count = files.count;
	obx_files_fini(&files);
	if (start) {
		if (!obx_job_start(&page->job, sweep, &error))
			return send_error(connection, MHD_HTTP_CONFLICT, "", error.text);
	} else {
		obx_sweep_free(sweep);
	}
	memory = open_memstream(&text, &size);
	if (!memory)
		return MHD_NO;
	ob_json_begin(&json, memory, OB_JSON_COMPACT);
	ob_json_object(&json, NULL);
	ob_json_uint(&json, "combinations", combinations);
	ob_json_uint(&json, "files", count);
	ob_json_end(&json);
	putc('\n', memory);
	fclose(memory);
	return send_text(connection, start ? MHD_HTTP_ACCEPTED : MHD_HTTP_OK, "application/json",
		text, size);
}

static enum MHD_Result answer_stop(struct obx_page *page, struct MHD_Connection *connection)
{
	char *text = strdup("{}\n");

	obx_job_stop(&page->job);
	return text ? send_text(connection, MHD_HTTP_OK, "application/json", text, 3) : MHD_NO;
}

/* ---- results ---- */

/* Parses an index in the query; -1: there is none; false: it is not a number. */
static bool take_index(struct MHD_Connection *connection, const char *name, int64_t *ret)
{
	const char *text = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, name);
	uint64_t number;

	*ret = -1;
	if (!text || !*text)
		return true;
	if (!ob_text_parse_number(text, 0, OBK_RQA_MAX_ROWS, &number))
		return false;
	*ret = (int64_t)number;
	return true;
}

static bool take_filter(struct MHD_Connection *connection, struct obx_results_filter *f)
{
	return take_index(connection, "file", &f->file) &&
		take_index(connection, "mode", &f->mode) && take_index(connection, "m", &f->m) &&
		take_index(connection, "tau", &f->tau) && take_index(connection, "eps", &f->eps) &&
		take_index(connection, "lmin", &f->lmin);
}

static bool print_results(struct obx_page *page, struct MHD_Connection *connection, const char *url,
	char **ret_text, size_t *ret_size, struct obx_error *error)
{
	struct obx_results_filter filter;
	int64_t offset, limit;
	FILE *memory;
	bool good;

	if (!take_filter(connection, &filter) || !take_index(connection, "offset", &offset) ||
		!take_index(connection, "limit", &limit) || limit > OBX_RESULTS_PAGE_MAX)
		return obx_error_set(error,
			"the query is not of whole numbers, or its limit is above %d",
			OBX_RESULTS_PAGE_MAX);
	memory = open_memstream(ret_text, ret_size);
	if (!memory)
		return obx_error_set(error, "out of memory");
	if (strcmp(url, "/api/lists") == 0) {
		obx_results_lists(page->job.sweep, memory);
		good = true;
	} else {
		good = obx_results_print(page->job.sweep, &filter,
			offset < 0 ? 0 : (uint64_t)offset, limit < 0 ? ROWS_USUAL : (uint32_t)limit,
			memory, error);
	}
	fclose(memory);
	if (!good)
		free(*ret_text);
	return good;
}

static bool draw_heat(struct obx_page *page, struct MHD_Connection *connection, char **ret_png,
	size_t *ret_size, char ret_over[OBX_OVER_TEXT_MAX], struct obx_error *error)
{
	const char *x = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "x");
	const char *y = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "y");
	struct obx_results_filter filter;
	int64_t measure, width;

	if (!take_filter(connection, &filter) || !take_index(connection, "measure", &measure) ||
		!take_index(connection, "width", &width))
		return obx_error_set(error, "the query is not of whole numbers");
	if (width >= 0 && (width < OBX_RESULTS_HEAT_MIN || width > OBX_RESULTS_HEAT_MAX))
		return obx_error_set(error, "width is a number of dots from %d to %d",
			OBX_RESULTS_HEAT_MIN, OBX_RESULTS_HEAT_MAX);
	return obx_results_heat(page->job.sweep, &filter, measure < 0 ? 0 : (unsigned)measure,
		x ? x : "eps", y ? y : "m", width < 0 ? HEAT_USUAL : (uint32_t)width,
		(uint8_t **)ret_png, ret_size, ret_over, error);
}

static enum MHD_Result answer_results(
	struct obx_page *page, struct MHD_Connection *connection, const char *url)
{
	bool heat = strcmp(url, "/api/heat.png") == 0, good = false, open;
	char *text = NULL, over[OBX_OVER_TEXT_MAX] = "";
	struct MHD_Response *response;
	struct obx_error error;
	size_t size = 0;

	pthread_mutex_lock(&page->job.use);
	pthread_mutex_lock(&page->job.lock);
	open = page->job.open;
	pthread_mutex_unlock(&page->job.lock);
	if (!open)
		obx_error_set(&error, "there are no results yet");
	else
		good = heat ? draw_heat(page, connection, &text, &size, over, &error)
			    : print_results(page, connection, url, &text, &size, &error);
	pthread_mutex_unlock(&page->job.use);
	if (!good)
		return send_error(connection, open ? MHD_HTTP_BAD_REQUEST : MHD_HTTP_NOT_FOUND, "",
			error.text);
	if (!heat)
		return send_text(connection, MHD_HTTP_OK, "application/json", text, size);
	response = MHD_create_response_from_buffer(size, text, MHD_RESPMEM_MUST_FREE);
	/* for the caption: what the cells are means over */
	if (response && *over)
		MHD_add_response_header(response, MEAN_OVER, over);
	return send_response(connection, MHD_HTTP_OK, "image/png", response);
}

static enum MHD_Result answer_download(
	struct obx_page *page, struct MHD_Connection *connection, const char *name)
{
	static const char *const names[] = { "results.csv", "summary.csv", "failed.csv",
		"sweep.json" };
	char path[4200], disposition[64];
	struct MHD_Response *response;
	struct stat st;
	size_t i = 0;
	int fd;

	while (i < sizeof names / sizeof names[0] && strcmp(names[i], name) != 0)
		i++;
	if (i == sizeof names / sizeof names[0])
		return send_error(connection, MHD_HTTP_NOT_FOUND, "", "there is no such file");
	pthread_mutex_lock(&page->job.lock);
	snprintf(path, sizeof path, "%s/%s", page->job.out, names[i]);
	if (page->job.phase != OBX_JOB_COMPLETED)
		path[0] = 0;
	pthread_mutex_unlock(&page->job.lock);
	fd = path[0] ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (fd < 0 || fstat(fd, &st) != 0) {
		if (fd >= 0)
			close(fd);
		return send_error(connection, MHD_HTTP_NOT_FOUND, "",
			path[0] ? "this file was not written" : "the sweep is not complete yet");
	}
	response = MHD_create_response_from_fd64((uint64_t)st.st_size, fd); /* closes fd */
	if (!response)
		return MHD_NO;
	snprintf(disposition, sizeof disposition, "attachment; filename=\"%s\"", names[i]);
	MHD_add_response_header(response, "Content-Disposition", disposition);
	return send_response(connection, MHD_HTTP_OK,
		i == 3 ? "application/json" : "text/csv; charset=utf-8", response);
}

/* ---- dispatch ---- */

static enum MHD_Result answer_get(
	struct obx_page *page, struct MHD_Connection *connection, const char *url)
{
	for (const struct obx_asset *a = obx_assets; a->url; a++)
		if (strcmp(a->url, url) == 0)
			return send_response(connection, MHD_HTTP_OK, a->type,
				MHD_create_response_from_buffer(a->size, (void *)(uintptr_t)a->data,
					MHD_RESPMEM_PERSISTENT));
	if (strcmp(url, "/api/setup") == 0)
		return answer_setup(page, connection);
	if (strcmp(url, "/api/events") == 0)
		return answer_events(page, connection);
	if (strcmp(url, "/api/results") == 0 || strcmp(url, "/api/lists") == 0 ||
		strcmp(url, "/api/heat.png") == 0)
		return answer_results(page, connection, url);
	if (strncmp(url, "/download/", 10) == 0)
		return answer_download(page, connection, url + 10);
	return send_error(connection, MHD_HTTP_NOT_FOUND, "", "there is nothing at this address");
}

static enum MHD_Result answer_post(struct obx_page *page, struct MHD_Connection *connection,
	const char *url, struct request *request)
{
	const char *origin = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Origin");
	const char *host = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Host");
	const char *ours =
		MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "X-Requested-With");

	if (!ours || strcmp(ours, "outboard") != 0 ||
		(origin &&
			(strncmp(origin, "http://", 7) != 0 || strcasecmp(origin + 7, host) != 0)))
		return send_error(connection, MHD_HTTP_FORBIDDEN, "",
			"this request was not sent by the page: load the page again");
	if (request->too_long)
		return send_error(
			connection, MHD_HTTP_CONTENT_TOO_LARGE, "", "the form is too long");
	if (strlen(request->body) != request->size)
		return send_error(connection, MHD_HTTP_BAD_REQUEST, "",
			"the form is damaged; load the page again");
	if (strcmp(url, "/api/plan") == 0 || strcmp(url, "/api/start") == 0)
		return answer_form(page, connection, request, url[5] == 's');
	if (strcmp(url, "/api/stop") == 0)
		return answer_stop(page, connection);
	return send_error(connection, MHD_HTTP_NOT_FOUND, "", "there is nothing at this address");
}

enum MHD_Result obx_page_answer(void *cls, struct MHD_Connection *connection, const char *url,
	const char *method, const char *version, const char *data, size_t *data_size, void **state)
{
	struct obx_page *page = cls;
	struct request *request = *state;

	(void)version;
	if (!request) { /* only the headers have arrived; the body follows */
		request = *state = calloc(1, sizeof *request);
		return request ? MHD_YES : MHD_NO;
	}
	if (*data_size) {
		size_t n = *data_size;

		if (request->size + n > OBX_PAGE_BODY_MAX)
			request->too_long = true;
		else
			memcpy(request->body + request->size, data, n);
		request->size += request->too_long ? 0 : n;
		*data_size = 0;
		return MHD_YES;
	}
	if (!obx_page_host_allowed(
		    page, MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Host")))
		return send_error(connection, MHD_HTTP_FORBIDDEN, "",
			"call this server by localhost, by its address, or by the name given with "
			"--host-name");
	if (strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0)
		return answer_get(page, connection, url);
	if (strcmp(method, "POST") == 0)
		return answer_post(page, connection, url, request);
	return send_error(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "", "only GET and POST");
}

void obx_page_done(void *cls, struct MHD_Connection *connection, void **state,
	enum MHD_RequestTerminationCode code)
{
	(void)cls;
	(void)connection;
	(void)code;
	free(*state);
	*state = NULL;
}
