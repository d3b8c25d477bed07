/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obd_loader: the state of one load, from PTX text to code: where the text is read, its symbols,
 * the memory, and the way out after an error. The loading thread only.
 *
 * ptx/ reads the text into symbols and statements. compile/ drives it and makes the program; only
 * compile/ accesses the fields that are marked so.
 */
#ifndef OBD_CORE_LOADER_H
#define OBD_CORE_LOADER_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "softdevice/core/arena.h"
#include "softdevice/core/program.h"
#include "softdevice/core/ptx/lex.h"

#define OBD_MAX_SCOPES 64u
#define OBD_NONE       UINT32_MAX /* no register, no label, no index */

struct obd_builder;
struct obd_labels;
struct obd_reloc;
struct obd_symbol;

struct obd_loader {
	struct obd_arena *arena;   /* of the program */
	struct obd_arena *scratch; /* freed when the load ends */
	struct obd_lex lex;
	struct obd_symbol **buckets;
	uint32_t n_buckets, n_symbols;
	struct obd_symbol *scopes[OBD_MAX_SCOPES];
	uint32_t scope;
	struct obd_labels *labels; /* of the function whose body is read, else NULL */
	uint32_t version;          /* of the PTX: 84 for 8.4 */
	uint32_t stmt_line;        /* line of the statement being lowered, 0: none */
	/* the result of a failed load, and the message's buffer */
	CUresult result;
	char *log;
	size_t log_size;
	jmp_buf fail;
	bool in_body; /* `refuse` is valid */
	jmp_buf refuse;
	const char *refused; /* message of obd_ptx_refuse for the current body */
	/* Of compile/. */
	struct obd_program *prog;
	struct obd_builder *b; /* the builder while inside a function, else NULL */
	struct obd_builder *builder;
	struct obd_reloc *relocs;
	uint32_t cap_funcs, cap_entries, cap_globals, cap_shared, cap_refs;
	uint32_t shared_refs_left; /* references to shared variables that are still allowed */
};

/* Ends the load with an error. The message and the current line go to the log. */
_Noreturn void obd_ptx_fail(struct obd_loader *ld, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
_Noreturn void obd_ptx_fail_with(struct obd_loader *ld, CUresult result, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/*
 * For valid PTX that this device does not implement. Ends the current function. The kernels that
 * reach it cannot run; the rest of the module can.
 */
_Noreturn void obd_ptx_refuse(struct obd_loader *ld, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void *obd_ptx_alloc(struct obd_loader *ld, size_t size); /* from the program's arena; never NULL */
void *obd_ptx_scratch(struct obd_loader *ld, size_t size);
/*
 * Makes room for one more element in the array of n elements. `most`: more are an error.
 */
void obd_ptx_grow(struct obd_loader *ld, void *array_pointer, uint32_t *cap, uint32_t n,
	size_t size, uint32_t most);

#endif
