/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Runs a record's opcode and body through the checks and the printers, as a server does. */
#include <stdlib.h>
#include <string.h>

#include "protocol/obp_calls.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char line[512];
	uint16_t opcode;
	uint64_t *body;
	uint32_t n;

	if (size < 2 || size > 1u << 20)
		return 0;
	memcpy(&opcode, data, 2);
	opcode %= OBP_OPCODE_END;
	n = (uint32_t)(size - 2) & ~7u;
	body = malloc(n + 1);
	if (!body)
		return 0;
	memcpy(body, data + 2, n);
	if (obp_check_req(opcode, body, n) && !obp_call_info(opcode))
		abort(); /* an unknown opcode must not pass the checks */
	obp_print_call(line, sizeof line, opcode, body, n);
	obp_print_reply(line, sizeof line, opcode, 0, body, n);
	free(body);
	return 0;
}
