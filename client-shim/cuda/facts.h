/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obc_facts: what the server has said about functions: their attributes, and that they can run.
 * Both depend on the code and the device alone, so a program that loads the same image again, for
 * example a library for each of its plans, is answered without a round trip. Not for images that
 * were loaded with options. Bounded: the oldest function is forgotten. Any thread.
 */
#ifndef OBC_FACTS_H
#define OBC_FACTS_H

#include <stdbool.h>
#include <stdint.h>

/* limit of functions of which something is known */
#define OBC_FACTS_MAX   256u
/* attributes of a function, by CUfunction_attribute */
#define OBC_FACTS_ATTRS 16u

/* A function of an image. */
struct obc_facts_name {
	uint8_t sha256[32]; /* of the image */
	uint32_t device;    /* the server's number */
	uint32_t index;     /* among the kernels of the image */
};

/*
 * Attributes that the server has returned. wanted: bit mask of those that must be known. False: at
 * least one is not, or the switch `local` is off; *ret is unchanged.
 */
bool obc_facts_attrs(
	const struct obc_facts_name *name, uint32_t wanted, int32_t ret[OBC_FACTS_ATTRS]);
/* known: bit mask of the values that are those of the code; the program has set the others. */
void obc_facts_put_attrs(
	const struct obc_facts_name *name, uint32_t known, const int32_t values[OBC_FACTS_ATTRS]);
/* Whether the server's driver has loaded the function before. */
bool obc_facts_runs(const struct obc_facts_name *name);
void obc_facts_put_runs(const struct obc_facts_name *name);

#endif
