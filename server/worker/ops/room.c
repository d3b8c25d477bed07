/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The limits on how many handles a session has. */
#include "base/check.h"
#include "server/layers/hold.h"
#include "server/layers/quota.h"
#include "server/worker/ops/ops.h"

CUresult obs_handle_room(struct obs_exec *x)
{
	const struct obs_session *s = x->session;
	uint64_t n = (uint64_t)s->streams.n_live + s->events.n_live + s->functions.n_live +
		s->arrays.n_live + s->textures.n_live + s->surfaces.n_live + s->texrefs.n_live +
		s->greens.n_live + s->graphs.n_live;

	if (ob_unlikely(x->refused != CUDA_SUCCESS))
		return x->refused;
	for (unsigned kind = 0; kind < OBS_KIND_END; kind++)
		n += s->made[kind].n_live;
	if (ob_unlikely(n >= obs_limits_now.handles))
		return obs_quota_refused("handles");
	return ob_likely(obs_hold_room(OBS_HANDLE_BYTES)) ? CUDA_SUCCESS
							  : obs_quota_refused("host memory");
}

CUresult obs_module_room(struct obs_exec *x)
{
	if (ob_unlikely(x->refused != CUDA_SUCCESS))
		return x->refused;
	return ob_likely(x->session->modules.n_live < obs_limits_now.modules)
		? CUDA_SUCCESS
		: obs_quota_refused("modules");
}
