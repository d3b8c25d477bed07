/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * What a command prints on stdout: lines of text, or with --json one object, which starts with the
 * devices that did the work. On the caller's stack; one thread.
 */
#ifndef OBX_ANSWER_H
#define OBX_ANSWER_H

#include "base/json.h"
#include "compute/command/devices.h"

#define OBX_ANSWER_BYTES 96 /* most bytes of a value */

struct obx_answer {
	bool as_json;
	struct ob_json json; /* for further members, if as_json */
};

/* Calls obx_devices_report. */
void obx_answer_begin(struct obx_answer *answer, bool as_json, const struct obx_devices *devices);
/* A value in hex: a member with this name, or a line "name 0x...". name NULL: in an array. */
void obx_answer_bytes(struct obx_answer *answer, const char *name, const uint8_t *bytes, size_t n);
/* Values up to obx_answer_array_end are elements of an array, or lines without a name. */
void obx_answer_array(struct obx_answer *answer, const char *name);
void obx_answer_array_end(struct obx_answer *answer);
/* The member "verified": true if the result was computed in a second way, else null. */
void obx_answer_verified(struct obx_answer *answer, bool verified);
void obx_answer_end(struct obx_answer *answer);

#endif
