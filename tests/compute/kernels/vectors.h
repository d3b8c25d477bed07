/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Reads the packed test vectors of tests/compute/data/kzg (its README.md describes the format). A
 * reader is owned by one test; the vector that it returns is valid until the next one is read. A
 * malformed file ends the program, because the file belongs to this repository.
 */
#ifndef TEST_VECTORS_H
#define TEST_VECTORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VECTOR_MAX_FIELDS 8

struct vector_field {
	char name[32];
	size_t count;
	bool null, truth;  /* the field has the value `null`; the value `true` */
	uint64_t *numbers; /* [count] of a list of numbers */
	uint8_t *bytes;    /* [count x length] if all values have one length */
	size_t length;     /* 0 if lengths differ */
};

struct vectors {
	char *text, *at;
	uint8_t *chunks;
	size_t chunks_size;
	char handler[64], name[128];
	struct vector_field fields[VECTOR_MAX_FIELDS];
	unsigned field_count;
};

void vectors_open(struct vectors *v, const char *folder);
/* Reads the next test of the handler. False at the end; everything is freed then. */
bool vectors_next(struct vectors *v, const char *handler);
/* Returns the nth field of the name; ends the program if there is none. */
const struct vector_field *vectors_field(const struct vectors *v, const char *name, unsigned nth);

#endif
