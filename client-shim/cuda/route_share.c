/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Sharing with other processes: by each server. */
#include "client-shim/cuda/device.h"
#include "client-shim/cuda/route_inside.h"
#include "client-shim/cuda/share.h"
#include "front/event.h"
#include "front/share.h"

static unsigned share_offers(void)
{
	unsigned offers = ~0u;

	for (uint32_t i = 0; i < obc_servers_count(); i++) {
		OBC_AT_SERVER(i);
		offers &= obc_sharing.offers();
	}
	return offers;
}

OBC_ROUTE_AT(CUresult, vmm_retain, (uint64_t addr, CUmemGenericAllocationHandle *ret),
	obc_route_at(addr, obc_server_number()), obc_sharing.vmm_retain, addr, ret)
OBC_ROUTE_AT(CUresult, range_export, (const struct obf_mem *mem, struct obf_share *ret),
	obc_device_server(mem->device), obc_sharing.range_export, mem, ret)
OBC_ROUTE_AT(CUresult, range_close, (const struct obf_mem *mem), obc_device_server(mem->device),
	obc_sharing.range_close, mem)
OBC_IN_CONTEXT(CUresult, event_export, (struct obf_event * event, struct obf_share *ret),
	event->ctx, obc_sharing.event_export, event, ret)
OBC_IN_CONTEXT(CUresult, event_import, (struct obf_event * event, const struct obf_share *share),
	event->ctx, obc_sharing.event_import, event, share)
OBC_ROUTE_AT(CUresult, pool_export, (int device, struct obf_share *ret), obc_device_server(device),
	obc_sharing.pool_export, device, ret)

/* Ids of exports are random: only the server that made one knows it. */
#define AT_EACH_SERVER(name, params, ...)                                                      \
	static CUresult route_##name params                                                    \
	{                                                                                      \
		CUresult result = obc_sharing.name(__VA_ARGS__);                               \
                                                                                               \
		for (uint32_t i = 0; result != CUDA_SUCCESS && i < obc_servers_count(); i++) { \
			OBC_AT_SERVER(i);                                                      \
			if (obc_sharing.name(__VA_ARGS__) == CUDA_SUCCESS)                     \
				result = CUDA_SUCCESS;                                         \
		}                                                                              \
		return result;                                                                 \
	}

AT_EACH_SERVER(vmm_import, (int fd, CUmemGenericAllocationHandle *ret), fd, ret)
AT_EACH_SERVER(range_open, (const struct obf_share *share, struct obf_mem *ret), share, ret)
AT_EACH_SERVER(pool_import, (const struct obf_share *share, int *ret_device), share, ret_device)

void obc_route_share_install(struct obf_backend *b)
{
	static struct obf_sharing all;

	all = (struct obf_sharing){
		.offers = share_offers,
		.vmm_export = obc_sharing.vmm_export, /* the handle tells the server */
		.vmm_import = route_vmm_import,
		.vmm_retain = route_vmm_retain,
		.range_export = route_range_export,
		.range_open = route_range_open,
		.range_close = route_range_close,
		.event_export = route_event_export,
		.event_import = route_event_import,
		.pool_export = route_pool_export,
		.pool_import = route_pool_import,
	};
	b->sharing = &all;
}
