/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Peers: whether a device's kernels can access the memory of another device, and the contexts that
 * do. The device behind decides; what is enabled is known here.
 */
#include "front/private.h"
#include "protocol/obf_calls.h"

/* ---- pairs of devices ---- */

static CUresult pair_query(const void *ret, CUdevice device, CUdevice peer, int *attr)
{
	CUresult result = obf_ready();

	if (result != CUDA_SUCCESS)
		return result;
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	if (!obf_device_valid(device) || !obf_device_valid(peer))
		return CUDA_ERROR_INVALID_DEVICE;
	for (int i = 0; i < OBF_PEER_ATTRS; i++)
		attr[i] = 0;
	return device != peer && obf_process.backend->peer_query
		? obf_process.backend->peer_query(device, peer, attr)
		: CUDA_SUCCESS;
}

CUresult obf_cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
	int attr[OBF_PEER_ATTRS];
	CUresult result = pair_query(can, device, peer, attr);

	if (result == CUDA_SUCCESS)
		*can = attr[0];
	return result;
}

CUresult obf_cuDeviceGetP2PAttribute(
	int *value, CUdevice_P2PAttribute attribute, CUdevice src, CUdevice dst)
{
	int attr[OBF_PEER_ATTRS];
	CUresult result = pair_query(value, src, dst, attr);

	if (result != CUDA_SUCCESS)
		return result;
	if (src == dst)
		return CUDA_ERROR_INVALID_DEVICE;
	if ((int)attribute < CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK ||
		(int)attribute > CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED)
		return CUDA_ERROR_INVALID_VALUE;
	*value = attr[attribute];
	return CUDA_SUCCESS;
}

/* ---- contexts ---- */

/* The current context, and the other one, which may have ended. */
static CUresult peers_enter(
	CUcontext handle, unsigned flags, struct obf_context **ret, struct obf_context **ret_peer)
{
	struct obf_ctx *ctx;
	CUresult result = obf_ctx_enter(&ctx);

	if (result != CUDA_SUCCESS)
		return result;
	if (flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	*ret = obf_context_of(ctx);
	if (!handle || obf_context_find(handle, ret_peer) != CUDA_SUCCESS || *ret_peer == *ret)
		return CUDA_ERROR_INVALID_CONTEXT;
	return CUDA_SUCCESS;
}

/* The row of the peer; NULL: none. Clears rows of contexts that have ended. Under the lock. */
static struct obf_peer *row_find(struct obf_context *context, const struct obf_context *peer)
{
	for (unsigned i = 0; i < OBF_PEERS_MAX; i++) {
		struct obf_peer *row = &context->peers[i];

		if (row->context &&
			(row->context->pub.id != row->id ||
				!atomic_load(&row->context->pub.active)))
			*row = (struct obf_peer){ 0 };
		if (row->context == peer)
			return row;
	}
	return NULL;
}

static CUresult row_take(struct obf_context *context, struct obf_context *peer)
{
	struct obf_peer *row;
	CUresult result = CUDA_SUCCESS;

	pthread_mutex_lock(&context->lock);
	if (row_find(context, peer)) {
		result = CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
	} else {
		row = row_find(context, NULL);
		if (row)
			*row = (struct obf_peer){ peer, peer->pub.id };
		else
			result = CUDA_ERROR_TOO_MANY_PEERS;
	}
	pthread_mutex_unlock(&context->lock);
	return result;
}

static bool row_drop(struct obf_context *context, const struct obf_context *peer)
{
	struct obf_peer *row;

	pthread_mutex_lock(&context->lock);
	row = row_find(context, peer);
	if (row)
		*row = (struct obf_peer){ 0 };
	pthread_mutex_unlock(&context->lock);
	return row != NULL;
}

CUresult obf_cuCtxEnablePeerAccess(CUcontext handle, unsigned flags)
{
	struct obf_context *context, *peer;
	int can = 0;
	CUresult result = peers_enter(handle, flags, &context, &peer);

	if (result != CUDA_SUCCESS)
		return result;
	result = obf_cuDeviceCanAccessPeer(&can, context->pub.device, peer->pub.device);
	if (result != CUDA_SUCCESS || !can)
		return result != CUDA_SUCCESS ? result : CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
	if (!atomic_load(&peer->pub.active))
		return CUDA_ERROR_INVALID_CONTEXT;
	result = row_take(context, peer);
	if (result != CUDA_SUCCESS)
		return result;
	result = obf_process.backend->peer_access(&context->pub, &peer->pub, true);
	if (result != CUDA_SUCCESS)
		row_drop(context, peer);
	return obf_ctx_result(&context->pub, result);
}

CUresult obf_cuCtxDisablePeerAccess(CUcontext handle)
{
	struct obf_context *context, *peer;
	CUresult result = peers_enter(handle, 0, &context, &peer);

	if (result != CUDA_SUCCESS)
		return result;
	if (!row_drop(context, peer))
		return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
	return obf_ctx_result(
		&context->pub, obf_process.backend->peer_access(&context->pub, &peer->pub, false));
}

/* ---- devices ---- */

static CUresult context_open(CUcontext handle, CUcontext peer_handle)
{
	struct obf_context *peer;
	struct obf_ctx *ctx;
	CUresult result = obf_cuCtxPushCurrent_v2(handle);

	if (result != CUDA_SUCCESS)
		return result;
	result = obf_ctx_enter(&ctx);
	if (result == CUDA_SUCCESS)
		result = obf_context_find(peer_handle, &peer);
	if (result == CUDA_SUCCESS)
		result = obf_process.backend->peer_access(ctx, &peer->pub, true);
	obf_cuCtxPopCurrent_v2(NULL);
	return result;
}

/*
 * The backend opens memory between contexts, and it stays open after they have ended. So the primary
 * contexts are retained for a moment. The caller has no lock that the end of a context may need.
 */
CUresult obf_peer_open(CUdevice owner, CUdevice reader)
{
	CUcontext mine, its;
	int can = 0;
	CUresult result = obf_cuDeviceCanAccessPeer(&can, reader, owner);

	if (result != CUDA_SUCCESS || !can)
		return result != CUDA_SUCCESS ? result : CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
	if (obf_process.backend->peers)
		return CUDA_SUCCESS;
	result = obf_cuDevicePrimaryCtxRetain(&mine, reader);
	if (result != CUDA_SUCCESS)
		return result;
	result = obf_cuDevicePrimaryCtxRetain(&its, owner);
	if (result == CUDA_SUCCESS) {
		result = context_open(mine, its);
		obf_cuDevicePrimaryCtxRelease_v2(owner);
	}
	obf_cuDevicePrimaryCtxRelease_v2(reader);
	return result;
}
