/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/worker/place.h"

#include <stdlib.h>

#include "server/layers/devices.h"
#include "server/layers/quota.h"

static bool place_valid(const struct obs_session *session)
{
	const struct obs_place *place = &session->place;
	uint32_t seen = 0;

	if (place->n_devices < 1 || place->n_devices > (uint32_t)session->n_devices)
		return false;
	for (uint32_t i = 0; i < place->n_devices; i++) {
		if (place->devices[i] >= session->n_devices || (seen >> place->devices[i] & 1))
			return false;
		seen |= 1u << place->devices[i];
	}
	return true;
}

static bool welcome_settle(struct obs_session *session)
{
	const struct obs_place *place = &session->place;
	struct obp_welcome *welcome = &session->welcome->welcome;
	struct obp_device *seen = calloc(place->n_devices, sizeof *seen);

	if (!seen)
		return false;
	for (uint32_t i = 0; i < place->n_devices; i++)
		seen[i] = welcome->devices[place->devices[i]];
	free(welcome->devices);
	welcome->devices = seen;
	welcome->n_devices = place->n_devices;
	return true;
}

/*
 * The primary contexts get the session's numbers. The context that was made in advance is kept if
 * its device is the session's, else given back: it takes memory of a device that may be another's.
 */
static void contexts_settle(struct obs_session *session)
{
	const struct obs_place *place = &session->place;
	CUcontext warm = session->contexts[0].driver;
	struct obs_context *kept = NULL;

	for (uint32_t i = 0; i < session->n_contexts; i++) {
		struct obs_context *context = &session->contexts[i];
		bool used = i < place->n_devices;

		context->device = i;
		context->primary = used;
		context->driver = used && place->devices[i] == 0 ? warm : NULL;
		kept = context->driver ? context : kept;
		atomic_store(&context->id, used ? (uint64_t)i + OBP_CTX_PRIMARY : 0);
	}
	session->n_contexts = place->n_devices;
	if (warm && !kept) {
		session->drv->cuCtxSetCurrent(NULL);
		session->lib.bare.cuDevicePrimaryCtxRelease_v2(0);
	}
	/* What is granted in advance lies on the session's first device. */
	if (kept != &session->contexts[0]) {
		session->drv->cuCtxSetCurrent(NULL);
		kept = NULL;
	}
	session->warm_context = session->warm_context ? kept : NULL;
}

bool obs_place_settle(struct obs_session *session)
{
	const struct obs_place *place = &session->place;

	if (!place->reserved)
		return true;
	if (!place_valid(session) || !welcome_settle(session))
		return false;
	contexts_settle(session);
	obs_devices_restrict(place->devices, place->n_devices);
	session->n_devices = (int)place->n_devices;
	obs_quota_reserve(place->memory);
	return true;
}
