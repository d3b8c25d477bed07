/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * What the supervisor has settled for a session with a ticket: the devices that it may use, and the
 * page of its reservation (reservation_page.h), whose descriptor comes last with the message. Plain
 * data in struct obs_handoff.
 */
#ifndef OBS_PLACE_H
#define OBS_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/control.h"

struct obs_place {
	uint32_t reserved;  /* 0: a session without a ticket: all devices, and no page */
	uint32_t n_devices; /* 1 to OBP_DEVICE_MAX if reserved */
	/* the server's numbers, all different, in the order that the program sees */
	uint8_t devices[OBP_DEVICE_MAX];
	uint64_t memory; /* bytes on each device for all sessions of the reservation; 0: no limit */
};

/* From the session's number to the server's. False: the session has no such device. */
static inline bool obs_place_to_server(
	const struct obs_place *place, uint32_t number, uint32_t *ret_number)
{
	if (place->reserved && number >= place->n_devices)
		return false;
	*ret_number = place->reserved ? place->devices[number] : number;
	return true;
}

/* From the server's number to the session's. False: the session has no such device. */
static inline bool obs_place_to_session(
	const struct obs_place *place, uint32_t number, uint32_t *ret_number)
{
	*ret_number = number;
	for (uint32_t i = 0; place->reserved && i < place->n_devices; i++)
		if (place->devices[i] == number) {
			*ret_number = i;
			return true;
		}
	return !place->reserved;
}

#endif
