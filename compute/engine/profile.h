/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * How long a device takes for an operation of a size: measured at powers of two, or guessed from
 * what the device is. Kept in a small text file of one machine and one set of devices. Plain
 * structs inside the context, guarded by its lock; reading and writing files needs none.
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
#define OBV_PROFILE_KEY       192 /* a device's name, a blank and what it is */

/* Seconds by log2 of the size; 0: not measured. */
struct obv_curve {
	double seconds[OBV_PROFILE_LOGS];
};

struct obv_curves {
	char key[OBV_PROFILE_KEY];
	struct obv_curve op[OUTBOARD_OP_COUNT];
	bool measured;
};

/*
 * Sizes: points of a product, elements of a transform, blobs, vectors of a recurrence matrix.
 * Interpolated between the powers of two measured.
 */
double obv_curve_seconds(const struct obv_curve *curve, uint32_t operation, double size);
/*
 * A guess, by figures of processors and cards that were measured when this was written
 * (compute/docs/SERVICE.md).
 */
void obv_curves_guess(struct obv_curves *curves, const struct obv_traits *traits);
/* What a device says of itself, where it says something: seconds, or 0. */
void obv_curve_expect(struct obv_curve *curve,
	double (*expect)(void *device, uint32_t operation, double size), void *device,
	uint32_t operation);
/* The smallest power of two from which `device` beats `cpu`; UINT64_MAX: never up to 2^26. */
uint64_t obv_curve_threshold(
	const struct obv_curve *device, const struct obv_curve *cpu, uint32_t operation);

/* A name for this machine and these devices: 16 hex digits. */
void obv_profile_machine(const struct obv_curves *curves, unsigned n, char ret_key[17]);
/*
 * Where the profile of `machine` is kept; false: no home folder is known, or the path does not fit.
 */
bool obv_profile_path(const char *machine, char *ret_path, size_t size);
/*
 * Curves of devices that the file names are replaced. False with *ret_why (a sentence, or NULL
 * where there is just no such file).
 */
bool obv_profile_read(const char *path, const char *machine, struct obv_curves *curves, unsigned n,
	const char **ret_why);
/* Written beside and renamed; the folders are made. False: errno says why. */
bool obv_profile_write(
	const char *path, const char *machine, const struct obv_curves *curves, unsigned n);

#endif
