/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obd_model: the real GPUs whose name, size and limits a dry run can report. A dry run accepts
 * machine code, keeps memory, copies and order, and executes no kernel.
 *
 * Constant data. Any thread.
 */
#ifndef OBD_MODEL_H
#define OBD_MODEL_H

#include <stddef.h>
#include <stdint.h>

struct obd_model_attr {
	uint16_t attribute; /* CUdevice_attribute */
	int32_t value;
};

struct obd_model {
	const char *id;   /* as in OUTBOARD_DRYRUN: "h100" */
	const char *name; /* as the driver of that GPU reports it */
	unsigned cc;      /* 90 for 9.0 */
	unsigned sms;
	uint64_t memory; /* bytes */
	/* bytes per second between the GPU and its memory: nominal, for the model of time */
	double bandwidth;
	/* attributes that differ from those of the software device */
	const struct obd_model_attr *attrs;
	size_t n_attrs;
};

#define OBD_MODEL_USUAL "h100"

/* NULL: no such model. */
const struct obd_model *obd_model_find(const char *id);
/* "a100, b200, ...", for messages. */
const char *obd_model_list(void);

#endif
