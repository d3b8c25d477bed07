/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Values of the registry, which others may have written. What is accepted stays the same when it is
 * written and read again. Input: a byte that chooses the kind of value, then the text.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loadbalancer/balancer/mirror.h"
#include "tests/fuzz/fuzz.h"

#define TEXT_MAX 20000u /* more than a value may have */

static union {
	struct obl_known_server server;
	struct obl_ledger ledger;
	struct obl_reservation reservation;
	struct obl_queued queued;
	struct obl_usage usage;
	struct obl_quota quota;
	struct obl_operator operated;
	struct obl_event event;
	uint64_t alive;
} first, second;

#define ROUND(read, write, member)                                                  \
	do {                                                                        \
		char *again;                                                        \
                                                                                    \
		if (!read(text, &first.member))                                     \
			return;                                                     \
		again = write(&first.member);                                       \
		if (!again)                                                         \
			return; /* too long with all fields, or no memory */        \
		if (!read(again, &second.member) ||                                 \
			memcmp(&first.member, &second.member, sizeof first.member)) \
			abort();                                                    \
		free(again);                                                        \
	} while (0)

static char *alive_text(const uint64_t *incarnation)
{
	return obl_alive_text(*incarnation);
}

static void value_round(unsigned kind, const char *text)
{
	memset(&first, 0, sizeof first);
	memset(&second, 0, sizeof second);
	switch (kind % 9) {
	case 0:
		ROUND(obl_known_server_read, obl_known_server_text, server);
		break;
	case 1:
		ROUND(obl_ledger_read, obl_ledger_text, ledger);
		break;
	case 2:
		ROUND(obl_reservation_read, obl_reservation_text, reservation);
		break;
	case 3:
		ROUND(obl_queued_read, obl_queued_text, queued);
		break;
	case 4:
		ROUND(obl_usage_read, obl_usage_text, usage);
		break;
	case 5:
		ROUND(obl_limits_read, obl_limits_text, quota);
		break;
	case 6:
		ROUND(obl_operator_read, obl_operator_text, operated);
		break;
	case 7:
		ROUND(obl_event_read, obl_event_text, event);
		break;
	default:
		ROUND(obl_alive_read, alive_text, alive);
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char text[TEXT_MAX];

	if (size == 0)
		return 0;
	size = size - 1 < sizeof text - 1 ? size - 1 : sizeof text - 1;
	memcpy(text, data + 1, size);
	text[size] = '\0';
	value_round(data[0], text);
	return 0;
}
