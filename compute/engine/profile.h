/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The time that a device needs for an operation of a given size: measured at powers of two, or
 * estimated from the properties of the device. Stored in a small text file, one for each machine
 * and set of devices. Plain structs inside the context, guarded by its lock; the functions that
 * read and write files need no lock.
 *
 *     outboard-profile 1
 *     machine 5d1f0c93a7be2204
 *     device cpu:2 Intel(R) Xeon(R)
 *     msm 10 0.0061
 */
#ifndef OBV_PROFILE_H
#define OBV_PROFILE_H

#include <stdbool.h>

#include "compute/engine/split.h"

#define OBV_PROFILE_VERSION   1
#define OBV_PROFILE_LOGS      27 /* sizes 2^0..2^26 */
#define OBV_PROFILE_MAX_BYTES 65536
#define OBV_PROFILE_KEY       192 /* length of a device's name, a blank and its model */

/* Seconds, indexed by log2 of the size; 0: not measured. */
struct obv_curve {
	double seconds[OBV_PROFILE_LOGS];
};

struct obv_curves {
	char key[OBV_PROFILE_KEY];
	struct obv_curve op[OUTBOARD_OP_COUNT];
	bool measured;
};

/*
 * Sizes are points of a product, elements of a transform, blobs, or vectors of a recurrence matrix.
 * Interpolates between the measured powers of two.
 */
double obv_curve_seconds(const struct obv_curve *curve, uint32_t operation, double size);
/*
 * An estimate that is based on measurements of some processors and cards (compute/docs/SERVICE.md).
 */
void obv_curves_guess(struct obv_curves *curves, const struct obv_traits *traits);
/* Sets the curve from a device's own expectations (seconds, or 0: unknown), where there are any. */
void obv_curve_expect(struct obv_curve *curve,
	double (*expect)(void *device, uint32_t operation, double size), void *device,
	uint32_t operation);
/*
 * The smallest power of two from which `device` is faster than `cpu`; UINT64_MAX: none up to 2^26.
 */
uint64_t obv_curve_threshold(
	const struct obv_curve *device, const struct obv_curve *cpu, uint32_t operation);

/* A key of 16 hex digits for this machine and these devices. */
void obv_profile_machine(const struct obv_curves *curves, unsigned n, char ret_key[17]);
/* The path of the profile of `machine`; false: there is no home folder, or the path is too long. */
bool obv_profile_path(const char *machine, char *ret_path, size_t size);
/*
 * Replaces the curves of the devices that the file contains. False: *ret_why is a sentence, or NULL
 * if the file does not exist.
 */
bool obv_profile_read(const char *path, const char *machine, struct obv_curves *curves, unsigned n,
	const char **ret_why);
/* Writes a temporary file and renames it; creates missing folders. False: errno has the reason. */
bool obv_profile_write(
	const char *path, const char *machine, const struct obv_curves *curves, unsigned n);

#endif
