/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obc_free_memory: the server's last answer about the free memory of each device, so that a program
 * that asks in a loop does not wait for a round trip each time.
 *
 * An answer is used again for OBC_FREE_MEMORY_NS after it was asked for, and only while this
 * process has made no call that may change the device's memory. Other processes change it too:
 * while the program asks, the control thread repeats the question on the control connection every
 * OBC_FREE_MEMORY_ASK_NS. So the program sees a change by another process within
 * OBC_FREE_MEMORY_NS. Without answers, for example when the control connection is lost, the next
 * call asks the server itself.
 *
 *   call    |--mem_info--|                .hit       .hit        .hit    (no round trip)
 *   control                     ask|---answer|  ask|---answer|
 *
 * Any thread, unless noted.
 */
#ifndef OBC_FREE_MEMORY_H
#define OBC_FREE_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "protocol/control.h"

/* the oldest answer that is used again */
#define OBC_FREE_MEMORY_NS      (500 * OB_MS)
/* between two questions of the control thread */
#define OBC_FREE_MEMORY_ASK_NS  (200 * OB_MS)
/* a program that asks again within this time is expected to go on */
#define OBC_FREE_MEMORY_LOOP_NS (2 * OB_SECOND)

/* Taken before a mem_info call, for obc_free_memory_put. */
struct obc_free_memory_mark {
	uint64_t others, now;
};

/* After the hello. Without it there is never an answer. */
void obc_free_memory_offered(const struct obp_welcome *welcome);
/* True: the answer is known. False: *ret_mark is for the call that must be made. */
bool obc_free_memory_get(uint32_t device, uint64_t *ret_free, uint64_t *ret_total,
	struct obc_free_memory_mark *ret_mark);
/* The answer of a call. number: of its record. */
void obc_free_memory_put(uint32_t device, const struct obc_free_memory_mark *mark,
	uint64_t bytes_free, uint64_t total, uint64_t number);

/*
 * The next device to ask for; *ret_value goes into the question. False: none is due now; *ret_wait
 * is the time until one is, in ns. Control thread only.
 */
bool obc_free_memory_due(
	uint64_t now, uint32_t *ret_device, uint64_t *ret_value, uint64_t *ret_wait);
/* Takes the answer to a question. False: it answers none. Control thread only. */
bool obc_free_memory_answer(const struct obp_message *message);
/* After fork, in the child. */
void obc_free_memory_forget(void);

#endif
