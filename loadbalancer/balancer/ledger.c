/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/balancer/ledger.h"

#include <string.h>

#include "base/check.h"

void obl_ledger_begin(const struct obl_known_server *server, uint64_t fence, struct obl_ledger *ret)
{
	*ret = (struct obl_ledger){
		.incarnation = server->incarnation, .fence = fence, .n_devices = server->n_devices
	};
	for (uint32_t i = 0; i < server->n_devices; i++) {
		memcpy(ret->devices[i].uuid, server->devices[i].uuid, 16);
		ret->devices[i].total = server->devices[i].total;
	}
}

struct obl_ledger_device *obl_ledger_device(struct obl_ledger *ledger, const uint8_t uuid[16])
{
	for (uint32_t i = 0; i < ledger->n_devices; i++)
		if (memcmp(ledger->devices[i].uuid, uuid, 16) == 0)
			return &ledger->devices[i];
	return NULL;
}

void obl_ledger_carry(struct obl_ledger *ledger, const struct obl_ledger *from)
{
	for (uint32_t i = 0; i < from->n_devices; i++) {
		const struct obl_ledger_device *old = &from->devices[i];
		struct obl_ledger_device *device = obl_ledger_device(ledger, old->uuid);

		if (!device)
			continue;
		device->reserved = old->reserved;
		device->share = old->share;
		device->sharers = old->sharers;
		device->exclusive = old->exclusive;
	}
}

static bool device_add(struct obl_ledger_device *device, const struct obl_reservation *reservation,
	const struct obl_holding *part)
{
	if (device->exclusive || (reservation->exclusive && device->sharers))
		return false;
	if (reservation->exclusive) {
		device->exclusive = true;
		device->reserved = device->total;
	} else if (part->memory > device->total ||
		device->reserved > device->total - part->memory) {
		return false;
	} else {
		device->reserved += part->memory;
	}
	if (reservation->share && device->share + reservation->share > OBP_SHARE_ALL)
		return false;
	device->share += reservation->share;
	device->sharers++;
	return true;
}

bool obl_ledger_add(struct obl_ledger *ledger, const struct obl_reservation *reservation,
	const struct obl_holding *part)
{
	for (uint32_t i = 0; i < part->n_devices; i++) {
		struct obl_ledger_device *device = obl_ledger_device(ledger, part->devices[i]);

		if (!device || !device_add(device, reservation, part))
			return false;
	}
	ledger->fence++;
	return true;
}

void obl_ledger_count(struct obl_ledger *ledger, const struct obl_reservation *reservation,
	const struct obl_holding *part)
{
	if (part->incarnation != ledger->incarnation)
		return;
	for (uint32_t i = 0; i < part->n_devices; i++) {
		struct obl_ledger_device *device = obl_ledger_device(ledger, part->devices[i]);

		if (!device)
			continue;
		device->exclusive |= reservation->exclusive;
		device->reserved = reservation->exclusive
			? device->total
			: ob_min(device->reserved + part->memory, OBL_MEMORY_MAX);
		device->share += reservation->share;
		device->sharers++;
	}
}

bool obl_ledger_subtract(struct obl_ledger *ledger, const struct obl_reservation *reservation,
	const struct obl_holding *part)
{
	if (part->incarnation != ledger->incarnation)
		return false;
	for (uint32_t i = 0; i < part->n_devices; i++) {
		struct obl_ledger_device *device = obl_ledger_device(ledger, part->devices[i]);

		if (!device)
			continue; /* it has left the server */
		device->reserved -= reservation->exclusive ? device->reserved
							   : ob_min(device->reserved, part->memory);
		device->share -= ob_min(device->share, reservation->share);
		device->sharers -= device->sharers > 0;
		device->exclusive = device->exclusive && !reservation->exclusive;
	}
	ledger->fence++;
	return true;
}

struct obl_usage obl_usage_of_part(
	const struct obl_reservation *reservation, const struct obl_holding *part, bool whole)
{
	struct obl_request request = { .gpus = part->n_devices,
		.memory = part->memory,
		.share = reservation->share,
		.exclusive = reservation->exclusive };
	struct obl_usage usage = obl_usage_of(&request);

	usage.sessions = whole;
	return usage;
}

struct obl_usage obl_usage_of_reservation(const struct obl_reservation *reservation)
{
	struct obl_usage sum = { 0 };

	for (uint32_t i = 0; i < reservation->n_parts; i++) {
		struct obl_usage part =
			obl_usage_of_part(reservation, &reservation->parts[i], i == 0);

		obl_usage_add(&sum, &part);
	}
	return sum;
}

void obl_reservation_drop(struct obl_reservation *reservation, uint32_t part)
{
	memmove(&reservation->parts[part], &reservation->parts[part + 1],
		(reservation->n_parts - part - 1) * sizeof reservation->parts[0]);
	reservation->n_parts--;
}
