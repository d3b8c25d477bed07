/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Filters for text from another machine or program before it is written to a terminal or a log. A
 * terminal acts on control characters: it moves the cursor, sets its title, writes to the
 * clipboard. All rules about permitted characters are here.
 *
 * ob_text_clean is for one line: names, refusals, log lines. ob_screen is for the output of a
 * program's kernels, which may have several lines and colours.
 */
#ifndef OB_TERMINAL_H
#define OB_TERMINAL_H

#include <stddef.h>

/*
 * Replaces in place by '?': control characters (C0, DEL, and C1 in either encoding), bytes that are
 * not valid UTF-8, and the characters that separate lines or change the direction of writing.
 * Returns the new length, at most n. The result contains no NUL. No state; any thread.
 */
size_t ob_text_clean(char *text, size_t n);

#define OB_SCREEN_HELD 32u /* bytes of the longest permitted sequence */

/*
 * A stream of text that arrives in pieces, which may end inside a character. Must be zeroed before
 * first use. One owner.
 */
struct ob_screen {
	unsigned char held[OB_SCREEN_HELD];
	size_t n;
};

/*
 * Copies to dst what may be written to a terminal: UTF-8, line feed, carriage return, tab,
 * backspace, bell, form feed, and the sequences that set colours (ESC [ numbers m). Every other
 * control character and every byte that is not valid UTF-8 is replaced by '?'. dst must hold size +
 * OB_SCREEN_HELD bytes. Returns the number of bytes written. An unfinished character is held until
 * the next piece.
 */
size_t ob_screen_text(struct ob_screen *screen, const char *text, size_t size, char *dst);

#endif
