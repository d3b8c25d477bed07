/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/cuda/peer.h"

#include <pthread.h>
#include <string.h>

#include "client-shim/cuda/device.h"
#include "client-shim/session/log.h"
#include "client-shim/session/server.h"
#include "protocol/obc_calls.h"

/* NOLINTNEXTLINE(misc-redundant-expression): constants of two headers */
_Static_assert(OBP_PEER_ATTRS == OBF_PEER_ATTRS, "one number of values");

struct pair {
	bool known;
	uint32_t attr[OBF_PEER_ATTRS];
};

static OBC_PER_SERVER pthread_mutex_t lock_first = PTHREAD_MUTEX_INITIALIZER;
#define lock OBC_HERE(lock_first)
static OBC_PER_SERVER struct pair pairs_first[OBP_DEVICE_MAX]
					     [OBP_DEVICE_MAX]; /* by numbers of the server */
#define pairs OBC_HERE(pairs_first)

CUresult obc_peer_query(int device, int peer, int ret[OBF_PEER_ATTRS])
{
	uint32_t from = obc_device_number(device), to = obc_device_number(peer);
	struct pair *pair = &pairs[from][to];
	CUresult result = CUDA_SUCCESS;

	if (obc_lines_known < OBP_LINE_peer_disable)
		return CUDA_SUCCESS; /* an older server: no access */
	pthread_mutex_lock(&lock);
	if (!pair->known) {
		result = obc_call_op_peer_query(from, to, pair->attr);
		pair->known = result == CUDA_SUCCESS;
	}
	for (int i = 0; i < OBF_PEER_ATTRS && pair->known; i++)
		ret[i] = (int)pair->attr[i];
	pthread_mutex_unlock(&lock);
	return result;
}

CUresult obc_peer_access(struct obf_ctx *ctx, struct obf_ctx *peer, bool enable)
{
	uint64_t id = (uint64_t)(uintptr_t)peer->backend;

	(void)ctx; /* it is current */
	return enable ? obc_call_op_peer_enable(id) : obc_call_op_peer_disable(id);
}
