/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/worker/start.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/spin.h"
#include "base/opt.h"
#include "protocol/obp_calls.h"
#include "server/common/stats_page.h"
#include "server/common/sandbox.h"
#include "server/layers/keep.h"
#include "server/layers/mps.h"
#include "server/layers/quota.h"
#include "server/worker/context.h"
#include "server/worker/completion.h"
#include "server/worker/free_memory.h"
#include "server/worker/held.h"
#include "server/worker/hostfunc.h"
#include "server/worker/reply.h"
#include "server/worker/stripe.h"
#include "transport/digest.h"
#include "transport/tls.h"

static bool device_describe(
	const struct obs_driver *drv, int ordinal, bool ptx_only, struct obp_device *ret)
{
	size_t total = 0;
	CUuuid uuid;

	if (drv->cuDeviceGetName(ret->name, (int)sizeof ret->name, ordinal) != CUDA_SUCCESS ||
		drv->cuDeviceTotalMem_v2(&total, ordinal) != CUDA_SUCCESS)
		return false;
	ret->name[sizeof ret->name - 1] = '\0';
	if (drv->cuDeviceGetUuid_v2(&uuid, ordinal) == CUDA_SUCCESS)
		memcpy(ret->uuid, uuid.bytes, sizeof ret->uuid);
	ret->total_mem = ret->free_mem = total;
	ret->ptx_only = ptx_only;
	for (int i = 1; i < (int)ob_min(OBP_ATTR_MAX, (unsigned)CU_DEVICE_ATTRIBUTE_MAX); i++)
		ret->attr_known[i] = drv->cuDeviceGetAttribute(&ret->attr[i], (CUdevice_attribute)i,
					     ordinal) == CUDA_SUCCESS;
	return true;
}

static bool devices_describe(struct obs_session *session)
{
	struct obp_welcome *welcome = &session->welcome->welcome;

	welcome->n_devices = (uint32_t)session->n_devices;
	welcome->devices = calloc(welcome->n_devices, sizeof *welcome->devices);
	welcome->vmm = true;
	for (uint32_t i = 0; welcome->devices && i < welcome->n_devices; i++) {
		if (!device_describe(
			    session->drv, (int)i, session->lib.ptx_only, &welcome->devices[i]))
			return false;
		welcome->vmm = welcome->vmm &&
			welcome->devices[i]
				.attr[CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED];
	}
	return welcome->devices != NULL;
}

/* What the attributes say of what NVML programs ask for. Clocks are in kHz there. */
static void facts_describe(const struct obp_device *from, struct obp_facts *ret)
{
	static const struct {
		CUdevice_attribute attr;
		enum obp_fact fact;
		int divisor;
	} of[] = { { CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, OBP_FACT_PCI_DOMAIN, 1 },
		{ CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, OBP_FACT_PCI_BUS, 1 },
		{ CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, OBP_FACT_PCI_DEVICE, 1 },
		{ CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, OBP_FACT_BUS_WIDTH, 1 },
		{ CU_DEVICE_ATTRIBUTE_CLOCK_RATE, OBP_FACT_CLOCK_MAX_SM, 1000 },
		{ CU_DEVICE_ATTRIBUTE_CLOCK_RATE, OBP_FACT_CLOCK_MAX_GRAPHICS, 1000 },
		{ CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, OBP_FACT_CLOCK_MAX_MEMORY, 1000 },
		{ CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, OBP_FACT_COMPUTE_MODE, 1 } };

	for (size_t i = 0; i < ob_count(of); i++)
		if (from->attr_known[of[i].attr] && from->attr[of[i].attr] >= 0)
			obp_fact_set(ret, of[i].fact,
				(uint64_t)(from->attr[of[i].attr] / of[i].divisor));
}

/* Which other devices' memory the device can access. */
static void peers_describe(const struct obs_session *session, int device, struct obp_facts *ret)
{
	uint64_t peers = 0, atomics = 0;

	for (int peer = 0; peer < session->n_devices; peer++) {
		int can = 0, native = 0;

		if (peer == device)
			continue;
		if (session->lib.bare.cuDeviceCanAccessPeer(&can, device, peer) != CUDA_SUCCESS)
			return;
		session->lib.bare.cuDeviceGetP2PAttribute(
			&native, CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED, device, peer);
		peers |= (uint64_t)(can != 0) << peer;
		atomics |= (uint64_t)(can && native) << peer;
	}
	obp_fact_set(ret, OBP_FACT_PEERS, peers);
	obp_fact_set(ret, OBP_FACT_PEER_ATOMICS, atomics);
}

/* Describes the devices on the stats page: what the driver has, not what this session may use. */
static void page_describe(const struct obs_session *session)
{
	struct ob_cause why = { .code = OB_ERR_NONE };

	for (int i = 0; i < session->n_devices; i++) {
		const struct obp_device *from = &session->welcome->welcome.devices[i];
		struct obs_stats_page_device *to = &obs_stats_page->devices[i];
		size_t total = from->total_mem;

		session->lib.bare.cuDeviceTotalMem_v2(&total, i);
		snprintf(to->name, sizeof to->name, "%.*s", OBP_LOAD_NAME_MAX - 1, from->name);
		memcpy(to->uuid, from->uuid, sizeof to->uuid);
		to->total = total;
		to->units =
			(uint32_t)ob_max(from->attr[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT], 0);
		to->clock_khz = (uint32_t)ob_max(from->attr[CU_DEVICE_ATTRIBUTE_CLOCK_RATE], 0);
		to->capability =
			(uint32_t)(from->attr[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR] * 10 +
				from->attr[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR]);
		to->ptx_only = from->ptx_only;
		facts_describe(from, &to->facts);
		peers_describe(session, i, &to->facts);
		to->share_by =
			obs_keep_offered(&session->lib.bare, i, &session->options->limits, &why);
	}
	snprintf(obs_stats_page->share_why, sizeof obs_stats_page->share_why, "%.*s",
		(int)OBS_SHARE_WHY_MAX - 1, why.text);
	obs_stats_page->cuda_version = (uint32_t)ob_max(session->lib.version, 0);
	obs_stats_page->n_devices = (uint32_t)session->n_devices;
}

/* Creating a context takes long on a GPU: create the first device's before a client comes. */
static void warm(struct obs_session *session)
{
	struct obs_context *first = &session->contexts[0];
	struct obp_device *device = &session->welcome->welcome.devices[0];
	size_t free_bytes, total;

	if (obs_context_ready(session, first) != CUDA_SUCCESS ||
		session->drv->cuCtxSetCurrent(first->driver) != CUDA_SUCCESS)
		return;
	session->warm_context = first;
	if (session->drv->cuMemGetInfo_v2(&free_bytes, &total) == CUDA_SUCCESS)
		device->free_mem = free_bytes;
}

const char *obs_session_driver_name(const struct obs_session *session)
{
	return session->lib.soft || session->lib.null ? NULL : session->lib.name;
}

/* MPS is settled before the driver is loaded, so with the share of the server's settings. */
static void mps_begin(const struct obs_options *options)
{
	const struct obs_limits *limits = &options->limits;
	struct ob_cause cause;
	bool wanted = false;
	enum ob_err err;

	for (unsigned i = 0; i < OBS_SHARE_BY_CHOICES; i++)
		wanted |= obs_limits_share_by(limits, i) == OBP_SHARE_BY_MPS;
	if (!wanted)
		return;
	if (strcmp(options->driver, "soft") == 0 || strcmp(options->driver, "null") == 0 ||
		strcmp(options->driver, OBS_DRIVER_DRYRUN) == 0)
		err = ob_cause_set(&cause, OB_ERR_DRIVER, "--driver %s is not a GPU's driver",
			options->driver);
	else
		err = obs_mps_begin(limits->share, &cause);
	if (err)
		obs_mps_refuse(&cause);
}

/* A method that was asked for and is not there is told by the supervisor (page_describe). */
static void mps_confirm(const struct obs_session *session)
{
	struct ob_cause cause;

	if (obs_mps_begun() && obs_mps_confirm(&session->lib.bare, session->n_devices, &cause))
		obs_mps_refuse(&cause);
}

enum ob_err obs_session_init(
	struct obs_session *session, const struct obs_options *options, struct ob_cause *ret_cause)
{
	enum ob_err err;
	uint8_t digest[OBT_SHA256_BYTES];

	session->options = options;
	obs_limits_now = options->limits;
	session->data.fd = session->channel = -1;
	session->welcome = calloc(1, sizeof *session->welcome);
	if (!session->welcome || obp_conn_init(&session->conn, OBP_ACCEPT_CONTROL) != OB_ERR_NONE)
		return ob_cause_set(ret_cause, OB_ERR_NO_MEMORY, "no memory");
	mps_begin(options);
	err = obs_driver_load(options->driver, &session->lib, ret_cause);
	if (err)
		return err;
	obs_cache_open_for(&session->cache, options->cache,
		ob_opt_on(OB_OPT_CACHE) ? options->upload_cache : 0, options->sandbox.uid);
	session->images.cache = &session->cache;
	err = obs_sandbox_enter(
		&options->sandbox, &session->cache, obs_session_driver_name(session), ret_cause);
	if (!err)
		err = obs_driver_start(&session->lib, ret_cause);
	if (err)
		return err;
	session->drv = &session->lib.table;
	session->n_devices = ob_min(session->lib.n_devices, (int)OBP_DEVICE_MAX);
	mps_confirm(session);
	for (int i = 0; i < session->n_devices; i++) {
		session->contexts[i].device = (uint32_t)i;
		session->contexts[i].primary = true;
		atomic_init(&session->contexts[i].id, (uint64_t)i + OBP_CTX_PRIMARY);
	}
	session->n_contexts = (uint32_t)session->n_devices;
	if (!devices_describe(session))
		return ob_cause_set(ret_cause, OB_ERR_DRIVER, "%s does not describe its devices",
			session->lib.name);
	obs_replies_init(&session->replies);
	obs_hostfuncs_init(&session->hostfuncs);
	obs_completion_init(&session->completion);
	obs_held_init(session);
	ob_spin_cores(); /* reads files, which the sandbox forbids later */
	obs_free_memory_init(&session->free_memory);
	/* untouched pages take no memory */
	session->scratch = aligned_alloc(64, OBS_SCRATCH_BYTES);
	if (!obs_staging_init(&session->staging, session->drv) || !session->scratch)
		return ob_cause_set(ret_cause, OB_ERR_NO_MEMORY, "no memory");
	obs_replies_own_slots(session);
	obs_stripes_init(&session->stripes);
	page_describe(session);
	/* The first digest loads OpenSSL's configuration: do it before a client waits. */
	obt_digest_sha256(session->secret, sizeof session->secret, digest);
	if (options->expect_tls)
		obt_tls_warm();
	warm(session);
	return OB_ERR_NONE;
}
