/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Symbols: a hash table of names with scopes, and the labels of a function. */
#ifndef OBD_CORE_SYMBOL_H
#define OBD_CORE_SYMBOL_H

#include <stdbool.h>
#include <stdint.h>

#include "softdevice/core/ptx/loader.h"
#include "softdevice/core/ptx/type.h"

#define OBD_MAX_LABELS  (1u << 22) /* of one function */
/*
 * Flag in an entry of obd_labels.at: the remaining bits are the number of another label, which
 * defines the position.
 */
#define OBD_LABEL_ALIAS 0x40000000u

enum obd_symbol_kind {
	OBD_SYM_REGISTER, /* one register, or a family name<count> */
	OBD_SYM_GLOBAL,   /* variable in global or constant memory */
	OBD_SYM_SHARED,
	OBD_SYM_LOCAL,
	OBD_SYM_KERNEL_PARAM,
	OBD_SYM_PARAM, /* parameter of a function or of a call, stored in words */
	OBD_SYM_FUNC,
	OBD_SYM_LABEL,
	OBD_SYM_PROTO,
	OBD_SYM_TARGETS, /* .branchtargets */
	OBD_SYM_REF,     /* .texref, .surfref, .samplerref; `offset` is the handle */
};

struct obd_symbol {
	const char *name;
	uint32_t size, hash;
	uint32_t scope;
	enum obd_symbol_kind kind;
	struct obd_symbol *next_bucket, *next_scope;
	enum obd_type type;
	/* registers: number of the first, and how many (0: not a family); params: words */
	uint32_t vreg, count;
	/* global, shared, function: index in the program; label: number; targets: table */
	uint32_t index;
	uint64_t offset, bytes;
	bool is_array, is_const, is_formal, spilled, is_ret;
	void *addr; /* address of a global, once it has memory */
	struct obd_function_decl *decl;
};

/* The labels of one function, by number. */
struct obd_labels {
	uint32_t *at; /* index of an instruction, an alias, or OBD_NONE: not defined yet */
	uint32_t n, cap;
};

/* NULL: none. Not a family of registers, whose name may also be that of something else. */
struct obd_symbol *obd_sym_find(struct obd_loader *ld, const char *name, uint32_t size);
struct obd_symbol *obd_sym_add(
	struct obd_loader *ld, const char *name, uint32_t size, enum obd_symbol_kind kind);
/* Begins and ends a scope. */
void obd_sym_push(struct obd_loader *ld);
void obd_sym_pop(struct obd_loader *ld);
/*
 * The vreg of a register, or of a member of a family. *ret_type is its declared type. OBD_NONE:
 * there is no such register.
 */
uint32_t obd_sym_register(
	struct obd_loader *ld, const char *name, uint32_t size, enum obd_type *ret_type);

/* A label without a name. Returns its number. */
uint32_t obd_label_add(struct obd_loader *ld);
/*
 * A use of a label. A label belongs to the block that defines it. A name that is not defined yet
 * may be defined later in this block or in an outer one. It is entered here and passed to the outer
 * block if this block ends without a definition.
 */
struct obd_symbol *obd_label_use(struct obd_loader *ld, const char *name, uint32_t size);
/* The label stands before the instruction with index `position`. */
void obd_label_define(struct obd_loader *ld, const char *name, uint32_t size, uint32_t position);

#endif
