/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * nvJitLink for a device that runs PTX only. PTX inputs are merged as text, as cuLink* does on such
 * a device (front/link.c). Inputs of LTO-IR are linked by nvJitLink itself, to PTX (-ptx), which is
 * then merged with the rest. The program gets the result where it asks for the linked machine code.
 *
 *   PTX, PTX in fatbins ───────────────────────────┐
 *   LTO-IR ── nvJitLink -lto -ptx ── its PTX ──────┴── obi_ptx_merge ──> "cubin"
 *
 * A program that asks for PTX itself (-ptx) is left alone.
 *
 * struct link: one for each handle, kept in a list under a lock. As in CUDA, the caller serialises
 * the calls for one handle.
 *
 * Source: nvJitLink.h of CUDA 13.0.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "client-shim/compilers/copies.h"
#include "image/image.h"
#include "image/ptx_merge.h"

/* nvJitLinkResult */
#define SUCCESS       0
#define INVALID_INPUT 3
#define PTX_COMPILE   4
#define INTERNAL      6

/* nvJitLinkInputType */
#define INPUT_CUBIN   1
#define INPUT_PTX     2
#define INPUT_FATBIN  4
#define INPUT_LIBRARY 6
#define INPUT_ANY     10

#define OPTIONS_MAX 256u
#define LINKS_MAX   4096u
#define FILE_BYTES  (256u << 20)
#define LOG_BYTES   4096u
#define NAME_BYTES  256u

struct input {
	char *text; /* owned; NUL-terminated */
	char name[NAME_BYTES];
};

struct link {
	struct link *next;
	void *handle;
	unsigned capability; /* 90 for 9.0 */
	bool lto, complete;
	unsigned foreign; /* inputs that nvJitLink itself has */
	struct input *inputs;
	size_t n;
	struct ob_buf image; /* the result; NUL-terminated */
	char log[LOG_BYTES];
};

typedef int create_function(void **ret, uint32_t n, const char **options);
typedef int destroy_function(void **handle);
typedef int data_function(void *handle, int type, const void *data, size_t size, const char *name);
typedef int file_function(void *handle, int type, const char *path);
typedef int complete_function(void *handle);
typedef int size_function(void *handle, size_t *ret);
typedef int bytes_function(void *handle, void *ret);

static struct link *links;
static unsigned n_links;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *function(const struct obc_copy *copy, const char *name, void *ret, size_t size)
{
	void *found = obc_copy_function(copy, name);

	memcpy(ret, &found, size);
	return found;
}

static void link_free(struct link *link)
{
	for (size_t i = 0; i < link->n; i++)
		free(link->inputs[i].text);
	free(link->inputs);
	ob_buf_fini(&link->image);
	free(link);
}

/* NULL: not one of ours. remove: the caller owns the result. */
static struct link *link_find(const void *handle, bool remove)
{
	struct link **at, *link;

	pthread_mutex_lock(&lock);
	for (at = &links; *at && (*at)->handle != handle; at = &(*at)->next)
		;
	link = *at;
	if (link && remove) {
		*at = link->next;
		n_links--;
	}
	pthread_mutex_unlock(&lock);
	return link;
}

/* ---- making a link ---- */

/* The number in "-arch=sm_90a"; 0: another option. */
static unsigned option_arch(const char *option)
{
	const char *number = strncmp(option, "-arch=", 6) == 0 ? strchr(option, '_') : NULL;

	return number ? (unsigned)strtoul(number + 1, NULL, 10) : 0;
}

/*
 * Calls nvJitLink's own function. One that is older than the device's capability refuses it; the
 * newest of others that it accepts is then linked for. LTO-IR for them can be linked alike, and PTX
 * runs on later devices.
 */
static int create_any(create_function *create, void **ret, uint32_t n, const char **options)
{
	static const unsigned others[] = { 121, 120, 103, 100, 90, 89, 80 };
	int result = create(ret, n, options);
	const char *changed[OPTIONS_MAX];
	char text[32];
	unsigned arch = 0;

	for (size_t i = 0; result != SUCCESS && i < sizeof others / sizeof *others; i++) {
		for (uint32_t j = 0; j < n; j++) {
			unsigned here = option_arch(options[j]);

			changed[j] = here ? text : options[j];
			arch = here ? here : arch;
		}
		if (others[i] >= arch)
			continue;
		snprintf(text, sizeof text, "-arch=sm_%u", others[i]);
		if (create(ret, n, changed) == SUCCESS)
			result = SUCCESS;
	}
	return result;
}

static int nvJitLinkCreate_on(
	const struct obc_copy *copy, void **ret, uint32_t n, const char **options)
{
	const char *changed[OPTIONS_MAX + 1];
	bool lto = false, ptx = false;
	create_function *create;
	struct link *link;
	unsigned arch = 0;
	int result;

	if (!function(copy, "nvJitLinkCreate", &create, sizeof create))
		return INTERNAL;
	if (!ret || !options || n > OPTIONS_MAX - 1)
		return create(ret, n, options);
	for (uint32_t i = 0; i < n; i++) {
		if (!options[i])
			return create(ret, n, options);
		changed[i] = options[i];
		lto = lto || strcmp(options[i], "-lto") == 0;
		ptx = ptx || strcmp(options[i], "-ptx") == 0;
		if (option_arch(options[i]))
			arch = option_arch(options[i]);
	}
	if (lto && !ptx)
		changed[n] = "-ptx";
	result = create_any(create, ret, n + (lto && !ptx), changed);
	if (result != SUCCESS || ptx)
		return result;
	link = calloc(1, sizeof *link);
	if (!link)
		return SUCCESS; /* and nvJitLink links as it would */
	link->handle = *ret;
	link->capability = arch;
	link->lto = lto;
	ob_buf_init(&link->image, FILE_BYTES);
	pthread_mutex_lock(&lock);
	if (n_links < LINKS_MAX) {
		link->next = links;
		links = link;
		n_links++;
		link = NULL;
	}
	pthread_mutex_unlock(&lock);
	if (link)
		link_free(link);
	return SUCCESS;
}

static int nvJitLinkDestroy_on(const struct obc_copy *copy, void **handle)
{
	struct link *link = handle ? link_find(*handle, true) : NULL;
	destroy_function *destroy;

	if (link)
		link_free(link);
	return function(copy, "nvJitLinkDestroy", &destroy, sizeof destroy) ? destroy(handle)
									    : INTERNAL;
}

/* ---- inputs ---- */

/* Copies the text; size: without a final NUL, or with it. */
static bool input_keep(struct link *link, const void *text, size_t size, const char *name)
{
	struct input *inputs, *input;
	char *copy;

	if (link->n == OBI_MERGE_MAX_INPUTS || size > FILE_BYTES)
		return false;
	inputs = realloc(link->inputs, (link->n + 1) * sizeof *inputs);
	if (!inputs)
		return false;
	link->inputs = inputs;
	copy = malloc(size + 1);
	if (!copy)
		return false;
	memcpy(copy, text, size);
	copy[size] = 0;
	input = &inputs[link->n++];
	input->text = copy;
	snprintf(input->name, sizeof input->name, "%s", name ? name : "input");
	return true;
}

/* libcudadevrt has machine code only. The software device defines its functions itself. */
static bool is_device_runtime(int type, const void *data, size_t size)
{
	static const char member[] = "cuda_device_runtime.o";

	return type == INPUT_LIBRARY && memmem(data, size, member, sizeof member - 1);
}

/*
 * Keeps the PTX in the data, and accepts the device's runtime library. False: there is no PTX for the
 * device, or no memory.
 */
static bool input_take(struct link *link, int type, const void *data, size_t size, const char *name)
{
	const struct obi_entry *entry;
	struct obi_image image;
	const uint8_t *text;
	bool owned, taken = false;
	size_t n;

	if (type == INPUT_PTX)
		return input_keep(link, data, size, name);
	if (is_device_runtime(type, data, size))
		return true;
	/* the "cubin" may be PTX that another function here has returned */
	if ((type != INPUT_CUBIN && type != INPUT_FATBIN && type != INPUT_ANY) ||
		obi_image_open_bounded(data, size, &image))
		return false;
	entry = obi_image_select(&image, link->capability, true);
	if (entry && !obi_entry_payload(entry, &text, &n, &owned)) {
		taken = input_keep(link, text, n, name);
		if (owned)
			free((void *)(uintptr_t)text);
	}
	obi_image_fini(&image);
	return taken;
}

static int nvJitLinkAddData_on(const struct obc_copy *copy, void *handle, int type,
	const void *data, size_t size, const char *name)
{
	struct link *link = link_find(handle, false);
	data_function *add;
	int result;

	if (link && data && size && input_take(link, type, data, size, name))
		return SUCCESS;
	if (!function(copy, "nvJitLinkAddData", &add, sizeof add))
		return INTERNAL;
	result = add(handle, type, data, size, name);
	if (link && result == SUCCESS)
		link->foreign++;
	return result;
}

static char *file_read(const char *path, size_t *ret)
{
	FILE *file = fopen(path, "rbe");
	char *data = NULL;
	long size;

	if (!file)
		return NULL;
	if (fseek(file, 0, SEEK_END) == 0 && (size = ftell(file)) > 0 && size <= (long)FILE_BYTES &&
		fseek(file, 0, SEEK_SET) == 0) {
		data = malloc((size_t)size);
		*ret = (size_t)size;
		if (data && fread(data, 1, *ret, file) != *ret) {
			free(data);
			data = NULL;
		}
	}
	fclose(file);
	return data;
}

static int nvJitLinkAddFile_on(
	const struct obc_copy *copy, void *handle, int type, const char *path)
{
	struct link *link = link_find(handle, false);
	file_function *add;
	size_t size = 0;
	char *data;
	bool taken;
	int result;

	data = link && path ? file_read(path, &size) : NULL;
	taken = data && input_take(link, type, data, size, path);
	free(data);
	if (taken)
		return SUCCESS;
	if (!function(copy, "nvJitLinkAddFile", &add, sizeof add))
		return INTERNAL;
	result = add(handle, type, path);
	if (link && result == SUCCESS)
		link->foreign++;
	return result;
}

/* ---- linking ---- */

/* Links the inputs that nvJitLink has, and adds the PTX to ours. */
static int foreign_link(const struct obc_copy *copy, struct link *link)
{
	complete_function *complete;
	size_function *size;
	bytes_function *bytes;
	size_t n = 0;
	char *text;
	int result;

	if (!function(copy, "nvJitLinkComplete", &complete, sizeof complete) ||
		!function(copy, "nvJitLinkGetLinkedPtxSize", &size, sizeof size) ||
		!function(copy, "nvJitLinkGetLinkedPtx", &bytes, sizeof bytes))
		return INTERNAL;
	if (!link->lto && link->n == 0)
		snprintf(link->log, sizeof link->log,
			"the software device runs PTX only, and an input holds none for compute "
			"capability %u.%u: pass PTX or LTO-IR (-lto) instead of machine code",
			link->capability / 10, link->capability % 10);
	result = complete(link->handle);
	if (result != SUCCESS || !link->lto)
		return result == SUCCESS ? PTX_COMPILE : result;
	link->log[0] = 0;
	result = size(link->handle, &n);
	if (result != SUCCESS)
		return result;
	text = n && n <= FILE_BYTES ? calloc(1, n + 1) : NULL;
	if (!text)
		return INTERNAL;
	result = bytes(link->handle, text);
	if (result == SUCCESS && !input_keep(link, text, strlen(text), "LTO"))
		result = INTERNAL;
	free(text);
	return result;
}

static int merge(struct link *link)
{
	struct obi_ptx *list = calloc(link->n, sizeof *list);
	bool made;

	if (!list)
		return INTERNAL;
	for (size_t i = 0; i < link->n; i++)
		list[i] = (struct obi_ptx){ link->inputs[i].text, strlen(link->inputs[i].text),
			link->inputs[i].name };
	if (link->n == 1)
		made = ob_buf_append(&link->image, list[0].text, list[0].size);
	else
		made = !obi_ptx_merge(list, link->n, &link->image, link->log, sizeof link->log);
	free(list);
	return made && ob_buf_append(&link->image, "", 1) ? SUCCESS : PTX_COMPILE;
}

static int nvJitLinkComplete_on(const struct obc_copy *copy, void *handle)
{
	struct link *link = link_find(handle, false);
	complete_function *complete;
	int result = SUCCESS;

	if (!link || (!link->foreign && !link->n))
		return function(copy, "nvJitLinkComplete", &complete, sizeof complete)
			? complete(handle)
			: INTERNAL;
	if (link->complete)
		return INVALID_INPUT;
	if (link->foreign)
		result = foreign_link(copy, link);
	if (result == SUCCESS)
		result = merge(link);
	link->complete = result == SUCCESS;
	return result;
}

/* ---- results ---- */

static int nvJitLinkGetLinkedCubinSize_on(const struct obc_copy *copy, void *handle, size_t *ret)
{
	struct link *link = link_find(handle, false);
	size_function *size;

	if (link && link->complete && ret) {
		*ret = link->image.size;
		return SUCCESS;
	}
	return function(copy, "nvJitLinkGetLinkedCubinSize", &size, sizeof size) ? size(handle, ret)
										 : INTERNAL;
}

static int nvJitLinkGetLinkedCubin_on(const struct obc_copy *copy, void *handle, void *ret)
{
	struct link *link = link_find(handle, false);
	bytes_function *bytes;

	if (link && link->complete && ret) {
		memcpy(ret, link->image.data, link->image.size);
		return SUCCESS;
	}
	return function(copy, "nvJitLinkGetLinkedCubin", &bytes, sizeof bytes) ? bytes(handle, ret)
									       : INTERNAL;
}

static int nvJitLinkGetErrorLogSize_on(const struct obc_copy *copy, void *handle, size_t *ret)
{
	struct link *link = link_find(handle, false);
	size_function *size;

	if (link && link->log[0] && ret) {
		*ret = strlen(link->log) + 1;
		return SUCCESS;
	}
	return function(copy, "nvJitLinkGetErrorLogSize", &size, sizeof size) ? size(handle, ret)
									      : INTERNAL;
}

static int nvJitLinkGetErrorLog_on(const struct obc_copy *copy, void *handle, void *ret)
{
	struct link *link = link_find(handle, false);
	bytes_function *bytes;

	if (link && link->log[0] && ret) {
		memcpy(ret, link->log, strlen(link->log) + 1);
		return SUCCESS;
	}
	return function(copy, "nvJitLinkGetErrorLog", &bytes, sizeof bytes) ? bytes(handle, ret)
									    : INTERNAL;
}

OBC_WRAP(nvJitLinkCreate, INTERNAL, (void **ret, uint32_t n, const char **options),
	(ret, n, options))
OBC_WRAP(nvJitLinkDestroy, INTERNAL, (void **handle), (handle))
OBC_WRAP(nvJitLinkAddData, INTERNAL,
	(void *handle, int type, const void *data, size_t size, const char *name),
	(handle, type, data, size, name))
OBC_WRAP(nvJitLinkAddFile, INTERNAL, (void *handle, int type, const char *path),
	(handle, type, path))
OBC_WRAP(nvJitLinkComplete, INTERNAL, (void *handle), (handle))
OBC_WRAP(nvJitLinkGetLinkedCubinSize, INTERNAL, (void *handle, size_t *ret), (handle, ret))
OBC_WRAP(nvJitLinkGetLinkedCubin, INTERNAL, (void *handle, void *ret), (handle, ret))
OBC_WRAP(nvJitLinkGetErrorLogSize, INTERNAL, (void *handle, size_t *ret), (handle, ret))
OBC_WRAP(nvJitLinkGetErrorLog, INTERNAL, (void *handle, void *ret), (handle, ret))

/* nvJitLink.h gives each function the version of its toolkit. */
#define VERSION(name, version)                       \
	extern __typeof__(name) __##name##_##version \
		__attribute__((alias(#name), visibility("default")))
#define VERSIONS(name)       \
	VERSION(name, 12_0); \
	VERSION(name, 12_1); \
	VERSION(name, 12_2); \
	VERSION(name, 12_3); \
	VERSION(name, 12_4); \
	VERSION(name, 12_5); \
	VERSION(name, 12_6); \
	VERSION(name, 12_7); \
	VERSION(name, 12_8); \
	VERSION(name, 12_9); \
	VERSION(name, 13_0); \
	VERSION(name, 13_1); \
	VERSION(name, 13_2); \
	VERSION(name, 13_3); \
	VERSION(name, 13_4); \
	VERSION(name, 13_5); \
	VERSION(name, 13_6); \
	VERSION(name, 13_7); \
	VERSION(name, 13_8); \
	VERSION(name, 13_9)

VERSIONS(nvJitLinkCreate);
VERSIONS(nvJitLinkDestroy);
VERSIONS(nvJitLinkAddData);
VERSIONS(nvJitLinkAddFile);
VERSIONS(nvJitLinkComplete);
VERSIONS(nvJitLinkGetLinkedCubinSize);
VERSIONS(nvJitLinkGetLinkedCubin);
VERSIONS(nvJitLinkGetErrorLogSize);
VERSIONS(nvJitLinkGetErrorLog);

const struct obc_wrapped obc_nvjitlink_wrapped[] = {
	OBC_ENTRY(nvJitLinkCreate),
	OBC_ENTRY(nvJitLinkDestroy),
	OBC_ENTRY(nvJitLinkAddData),
	OBC_ENTRY(nvJitLinkAddFile),
	OBC_ENTRY(nvJitLinkComplete),
	OBC_ENTRY(nvJitLinkGetLinkedCubinSize),
	OBC_ENTRY(nvJitLinkGetLinkedCubin),
	OBC_ENTRY(nvJitLinkGetErrorLogSize),
	OBC_ENTRY(nvJitLinkGetErrorLog),
	{ 0 },
};
