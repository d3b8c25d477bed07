/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Progress on standard error: on a terminal one line that is redrawn, else one line every ten
 * seconds and a last one. Owned by one thread at a time.
 */
#ifndef OBX_RQA_METER_H
#define OBX_RQA_METER_H

#include <stdbool.h>

enum obx_meter_mode { OBX_METER_AUTO, OBX_METER_ALWAYS, OBX_METER_NEVER };

struct obx_meter {
	/* drawn: the bar is on the screen; shown: it was at some time */
	bool terminal, off, drawn, shown;
	double last; /* time of the last line, in seconds */
};

/*
 * "auto", "always" (lines, also if standard error is not a terminal and ten seconds have not
 * passed), "never". False: another word.
 */
bool obx_meter_parse(const char *text, enum obx_meter_mode *ret_mode);
void obx_meter_init(struct obx_meter *meter, enum obx_meter_mode mode);
/*
 * share 0..1; eta in seconds, NaN: unknown. text follows them, with the memory of this process.
 * last: the final state, printed only if something was printed before.
 */
void obx_meter_show(struct obx_meter *meter, double share, double elapsed, double eta,
	const char *text, bool last);
/* Removes the bar to make room for another line; the next show draws it again. */
void obx_meter_clear(struct obx_meter *meter);

#endif
