/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obi_plain: decides whether PTX is plain, which means that every driver that knows its version
 * accepts it. The decision is conservative and uses the tokens that ptx_scan.c reads: every
 * instruction, its qualifiers and every directive must be in a short list of what compilers
 * generate for ordinary C++. Everything else is not plain. The decision does not cover .version,
 * .target and the memory that the module needs.
 *
 * It is meant for text from a compiler. Operands are not checked, so hand-written text that is
 * judged plain may still be refused. Used by one thread, during the scan.
 */
#ifndef OBI_PTX_PLAIN_H
#define OBI_PTX_PLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "image/ptx_lexer.h"

/* Limits in bytes above which a driver's compiler may refuse a module. */
#define OBI_PLAIN_SHARED (48u << 10) /* static shared memory of a kernel */
#define OBI_PLAIN_CONST  (60u << 10) /* constant variables of the module */
#define OBI_PLAIN_PARAM  4096u       /* parameters of a kernel */
#define OBI_PLAIN_LOCAL  (16u << 10) /* one local variable */

#define OBI_PLAIN_SEEN 256u

struct obi_plain {
	bool ok; /* so far */
	uint8_t state;
	bool is_local;    /* a .local declaration */
	const char *word; /* the first word of a statement: an opcode or a label */
	size_t word_size;
	/* opcodes that were found plain, by hash */
	struct {
		const char *text;
		size_t size;
	} seen[OBI_PLAIN_SEEN];
};

void obi_plain_init(struct obi_plain *plain);
/* Processes the current token of a function's body, including its braces. */
void obi_plain_token(struct obi_plain *plain, const struct obi_ptx_lexer *lexer);
/* Starts the body of a function. */
void obi_plain_body(struct obi_plain *plain);
/* Processes the current token, a directive or a word outside of bodies. */
void obi_plain_outside(struct obi_plain *plain, const struct obi_ptx_lexer *lexer);
/* Processes a function that is declared .extern. */
void obi_plain_extern(struct obi_plain *plain, const char *name, size_t size);

#endif
