/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/nvml/state.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/log.h"
#include "client-shim/nvml/direct.h"
#include "client-shim/nvml/nvml_calls.h"
#include "transport/failure.h"

#define DEFAULT_SERVER "tcp://127.0.0.1:14800"
#define SERVERS_MAX    (64u * (OBT_URL_MAX + 1))

struct ob_nvml_device {
	uint32_t place;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t users; /* nvmlInit calls that no nvmlShutdown has undone */
static struct obl_view view;
static char servers[SERVERS_MAX];
static struct ob_nvml_device handles[OBL_VIEW_DEVICES];

/* ---- fork: the lock may be held by a thread that the child does not have ---- */

static void before_fork(void)
{
	if (!obc_nvml_forking)
		pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
	if (!obc_nvml_forking)
		pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void attach(void)
{
	ob_log_set_name("outboard");
	for (uint32_t i = 0; i < OBL_VIEW_DEVICES; i++)
		handles[i].place = i;
	pthread_atfork(before_fork, after_fork, after_fork);
}

/* ---- the beginning ---- */

static int result_of(enum ob_err err, int lost)
{
	switch (err) {
	case OB_ERR_NONE:
		return OB_NVML_OK;
	case OB_ERR_TIMEOUT:
		return OB_NVML_TIMEOUT;
	case OB_ERR_NO_MEMORY:
		return OB_NVML_MEMORY;
	case OB_ERR_VERSION:
	case OB_ERR_MAGIC:
	case OB_ERR_PROTOCOL:
		return OB_NVML_LIB_RM_VERSION_MISMATCH;
	case OB_ERR_URL:
		return OB_NVML_INVALID_ARGUMENT;
	default:
		return lost;
	}
}

static struct obl_view_terms terms_read(void)
{
	const char *list = getenv("OUTBOARD_SERVER");

	strncpy(servers, list && *list ? list : DEFAULT_SERVER, sizeof servers - 1);
	return obl_view_terms_read(servers);
}

/*
 * A program of a pool without a reservation: it sees no device, because it is not known yet which
 * ones it will get.
 */
static enum ob_err no_devices(struct obp_load *ret, struct ob_cause *ret_cause)
{
	(void)ret_cause;
	*ret = (struct obp_load){ .n_devices = 0 };
	return OB_ERR_NONE;
}

static bool is_unreserved(void)
{
	const char *pool = getenv("OUTBOARD_POOL"), *tickets = getenv("OUTBOARD_TICKET");

	return pool && *pool && !(tickets && *tickets);
}

static int open_view(void)
{
	struct obl_view_terms terms = terms_read();
	const char *direct = getenv("OUTBOARD_DIRECT");
	struct ob_cause cause = { .code = OB_ERR_NONE };
	char text[OBT_FAILURE_TEXT];
	enum ob_err err;

	/* as for a session: an unprivileged user must not choose a privileged program's server */
	if (getauxval(AT_SECURE))
		return OB_NVML_DRIVER_NOT_LOADED;
	view.local = direct && strcmp(direct, "1") == 0 ? obc_nvml_direct : NULL;
	if (!view.local && is_unreserved()) {
		view.local = no_devices;
		terms.timeout_ns = 0; /* there is no device to wait for */
		ob_warn("NVML: OUTBOARD_POOL names a pool and this program has no reservation of "
			"it, so no GPU is shown; start it with 'outboard run --pool'");
	}
	err = obl_view_open(&view, &terms, &cause);
	if (err) {
		obl_view_failure_print(&view, &cause, text, sizeof text);
		ob_warn("NVML: %s", text);
	}
	return result_of(err, OB_NVML_DRIVER_NOT_LOADED);
}

int obc_nvmlInitWithFlags(uint32_t flags)
{
	int result = OB_NVML_OK;

	if (flags & ~(OB_NVML_INIT_NO_GPUS | OB_NVML_INIT_NO_ATTACH))
		return OB_NVML_INVALID_ARGUMENT;
	pthread_mutex_lock(&lock);
	if (users == 0)
		result = open_view();
	if (!result)
		users++;
	return obc_nvml_leave(result);
}

int obc_nvmlInit_v2(void)
{
	return obc_nvmlInitWithFlags(0);
}

int obc_nvmlInit(void)
{
	return obc_nvmlInitWithFlags(0);
}

int obc_nvmlShutdown(void)
{
	pthread_mutex_lock(&lock);
	if (users == 0)
		return obc_nvml_leave(OB_NVML_UNINITIALIZED);
	if (--users == 0)
		obl_view_close(&view);
	return obc_nvml_leave(OB_NVML_OK);
}

/* ---- a call ---- */

int obc_nvml_enter(bool fresh)
{
	enum ob_err err;

	pthread_mutex_lock(&lock);
	if (users == 0)
		return obc_nvml_leave(OB_NVML_UNINITIALIZED);
	err = fresh ? obl_view_refresh(&view) : OB_ERR_NONE;
	return err ? obc_nvml_leave(result_of(err, OB_NVML_GPU_IS_LOST)) : OB_NVML_OK;
}

int obc_nvml_leave(int result)
{
	pthread_mutex_unlock(&lock);
	return result;
}

bool obc_nvml_place(ob_nvml_device_t device, uint32_t *ret_place)
{
	for (uint32_t i = 0; i < view.n_devices; i++)
		if (device == &handles[i]) {
			*ret_place = i;
			return true;
		}
	return false;
}

ob_nvml_device_t obc_nvml_handle(uint32_t place)
{
	return &handles[place];
}

const struct obl_view *obc_nvml_view(void)
{
	return &view;
}

const struct obp_load_device *obc_nvml_device(uint32_t place)
{
	return obl_view_device(&view, place);
}

int obc_nvml_fact(uint32_t place, enum obp_fact fact, uint64_t *ret_value)
{
	return obp_fact_get(&obc_nvml_device(place)->facts, fact, ret_value)
		? OB_NVML_OK
		: OB_NVML_NOT_SUPPORTED;
}

int obc_nvml_fact32(uint32_t place, enum obp_fact fact, uint32_t *ret_value)
{
	uint64_t value;
	int result = obc_nvml_fact(place, fact, &value);

	if (!result && value > UINT32_MAX)
		result = OB_NVML_NOT_SUPPORTED;
	if (!result)
		*ret_value = (uint32_t)value;
	return result;
}

int obc_nvml_text(const char *text, char *buffer, uint32_t size)
{
	size_t n = strlen(text) + 1;

	if (n > size)
		return OB_NVML_INSUFFICIENT_SIZE;
	memcpy(buffer, text, n);
	return OB_NVML_OK;
}

int obc_nvml_absent(const char *name)
{
	int result = obc_nvml_enter(false);

	if (result)
		return result;
	ob_debug("%s is not supported", name);
	return obc_nvml_leave(OB_NVML_NOT_SUPPORTED);
}

int obc_nvml_denied(const char *name)
{
	int result = obc_nvml_enter(false);

	if (result)
		return result;
	ob_debug("%s: only the server's administrator may change a GPU", name);
	return obc_nvml_leave(OB_NVML_NO_PERMISSION);
}
