/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Text that another machine or program made, on its way to a terminal or a log. A terminal acts on
 * control characters: it moves the cursor, sets its title, writes to the clipboard. All rules about
 * what may pass are here.
 *
 * ob_text_clean is for one line: names, refusals, log lines. ob_screen is for the output of a
 * program's kernels, which has lines and may have colours.
 */
#ifndef OB_TERMINAL_H
#define OB_TERMINAL_H

#include <stddef.h>

/*
 * In place: control characters (C0, DEL, and C1 in either form), bytes that are no UTF-8, and the
 * characters that separate lines or change the direction of writing become '?'. Returns the new
 * length, at most n. The result has no byte 0. No state; any thread.
 */
size_t ob_text_clean(char *text, size_t n);

#define OB_SCREEN_HELD 32u /* bytes of the longest sequence that passes */

/*
 * One stream of text that comes in pieces, which may end inside a character. Zeroed at the start;
 * one owner.
 */
struct ob_screen {
	unsigned char held[OB_SCREEN_HELD];
	size_t n;
};

/*
 * What a terminal may get of `size` bytes: UTF-8, line feed, carriage return, tab, backspace, bell,
 * form feed, and the sequences that set colours (ESC [ numbers m). Every other control character
 * and every byte that is no UTF-8 becomes '?'. dst takes size + OB_SCREEN_HELD bytes. Returns how
 * many were written; an unfinished character waits for the next piece.
 */
size_t ob_screen_text(struct ob_screen *screen, const char *text, size_t size, char *dst);

#endif
