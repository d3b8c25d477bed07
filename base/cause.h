/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * ob_cause: why an operation failed, for a person. The function that detects the failure fills it
 * in and returns the code; callers pass both on, or replace the text by one that says more; only
 * programs print it (docs/adr/0024-errors.md). Plain data, owned by the caller. Any thread.
 */
#ifndef OB_CAUSE_H
#define OB_CAUSE_H

#include "base/err.h"

#define OB_CAUSE_TEXT 1024u /* bytes of a text, NUL included; longer ones are cut */

struct ob_cause {
	enum ob_err code;
	int system; /* the errno value behind the failure; 0: none */
	/* what failed, why, what to do; one line, without a full stop */
	char text[OB_CAUSE_TEXT];
};

/*
 * Records a failure and returns `code`. ret_cause may be NULL. The arguments may point into the
 * text that is replaced.
 */
enum ob_err ob_cause_set(struct ob_cause *ret_cause, enum ob_err code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/*
 * The same for a failed system call: adds ": " and the text of `system`, an errno value, and keeps
 * the value.
 */
enum ob_err ob_cause_set_system(struct ob_cause *ret_cause, enum ob_err code, int system,
	const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
