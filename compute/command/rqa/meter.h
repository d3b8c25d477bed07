/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Progress on standard error: on a terminal one line that is redrawn, else a line every ten seconds
 * (and a last one). Owned by one thread at a time.
 */
#ifndef OBX_RQA_METER_H
#define OBX_RQA_METER_H

#include <stdbool.h>

enum obx_meter_mode { OBX_METER_AUTO, OBX_METER_ALWAYS, OBX_METER_NEVER };

struct obx_meter {
	bool terminal, off, drawn, shown; /* drawn: the bar is on the screen; shown: it has been */
	double last;                      /* seconds, of the line printed last */
};

/*
 * "auto", "always" (lines, also where standard error is no terminal and nothing has run ten
 * seconds), "never". false: another word.
 */
bool obx_meter_parse(const char *text, enum obx_meter_mode *ret_mode);
void obx_meter_init(struct obx_meter *meter, enum obx_meter_mode mode);
/*
 * share 0..1; eta in seconds, NaN when unknown; text: what stands after it and the memory that this
 * process has. `last`: the final state, printed when there was anything before it.
 */
void obx_meter_show(struct obx_meter *meter, double share, double elapsed, double eta,
	const char *text, bool last);
/* Room for another line: the bar is wiped and drawn again by the next show. */
void obx_meter_clear(struct obx_meter *meter);

#endif
