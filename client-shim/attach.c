/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Where the library enters a process and leaves it. Nothing is connected here: a program that never
 * calls CUDA never meets a server. Loaded with -z nodelete, because threads may end, and run our
 * hooks, after a dlclose.
 */
#include <pthread.h>

#include "base/log.h"
#include "client-shim/context.h"
#include "client-shim/device.h"
#include "client-shim/module.h"
#include "client-shim/start.h"
#include "client-shim/times.h"
#include "front/backend.h"
#include "protocol/obc_locals.h"
#include "protocol/obc_procs.h"

static struct obf_backend backend = {
	.what = "outboard",
	.driver_version = OBC_DRIVER_VERSION,
	.start = obc_start,
	.visible = obc_devices_visible,
	.alive = obc_alive,
	.ctx_create = obc_ctx_create,
	.ctx_destroy = obc_ctx_destroy,
	.ctx_synchronize = obc_ctx_synchronize,
	.stream_synchronize = obc_cuStreamSynchronize,
	.ctx_settle = obc_ctx_settle,
	.ctx_limit = obc_ctx_limit,
	.mod_load = obc_mod_load,
	.mod_unload = obc_mod_unload,
	.func_get = obc_func_get,
	.func_load = obc_func_load,
	.func_attrs = obc_func_attrs,
	.func_set_attr = obc_func_set_attr,
	.global_get = obc_global_get,
	.export_table = obc_times_table,
	.procs = obc_procs,
};

static __attribute__((constructor)) void attach(void)
{
	ob_log_set_name("outboard");
	backend.n_procs = obc_n_procs;
	obf_attach(&backend);
	pthread_atfork(NULL, NULL, obc_forked);
}

static __attribute__((destructor)) void detach(void)
{
	obc_stop();
}
