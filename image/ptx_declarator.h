/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* obi_declarator: one name of a declaration: its type, alignment and size in bytes. */
#ifndef OBI_PTX_DECLARATOR_H
#define OBI_PTX_DECLARATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "image/ptx_lexer.h"
#include "image/ptx_plain.h"

/* Types whose variables have no address. */
enum obi_declarator_ref {
	OBI_DECLARATOR_PLAIN,
	OBI_DECLARATOR_TEXTURE,
	OBI_DECLARATOR_SURFACE,
	OBI_DECLARATOR_SAMPLER
};

struct obi_declarator {
	const char *name;
	size_t name_size;
	uint64_t size, align; /* bytes */
	bool is_managed, pointer_seen;
	uint32_t element, vector;
	enum obi_declarator_ref ref;
};

/*
 * Reads the attributes and type before a name: [.attribute(…)] [.align N] [.v2] .type [.ptr .space
 * .align N]. The name becomes the current token. False: the alignment is invalid.
 */
bool obi_declarator_head(
	struct obi_declarator *d, struct obi_ptx_lexer *lexer, struct obi_plain *plain);
/* Reads name [dim]…; sets size and align. False: there is no name, or a dimension is invalid. */
bool obi_declarator_name(struct obi_declarator *d, struct obi_ptx_lexer *lexer);

#endif
