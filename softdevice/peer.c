/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/peer.h"

CUresult obd_peer_query(int device, int peer, int ret[OBF_PEER_ATTRS])
{
	(void)device;
	(void)peer;
	ret[0] = 1;
	ret[CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED] = 1;
	ret[CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED] = 1;
	return CUDA_SUCCESS;
}

CUresult obd_peer_access(struct obf_ctx *ctx, struct obf_ctx *peer, bool enable)
{
	(void)ctx;
	(void)peer;
	(void)enable;
	return CUDA_SUCCESS;
}
