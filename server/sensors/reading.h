/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * One message of the sensors process to the supervisor over a SOCK_SEQPACKET pair: what NVIDIA's
 * management library says of one device. Both ends are the same build of one program, so the
 * structure is the format.
 */
#ifndef OBS_READING_H
#define OBS_READING_H

#include <stdint.h>

#include "protocol/facts.h"

#define OBS_READING_FD 3   /* descriptor of the sensors process's end */
#define OBS_READING_MS 500 /* between two readings */

struct obs_reading {
	uint8_t uuid[16];
	char driver[80]; /* "550.54.15" */
	/*
	 * the last error of the hardware since the process's start, by NVIDIA's number (Xid); 0:
	 * none
	 */
	uint32_t xid;
	struct obp_facts facts;
};

#endif
