/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Names of servers, tenants and balancers, and ids of reservations, as texts. No state; any thread. */
#ifndef OBL_NAMES_H
#define OBL_NAMES_H

#include <stdbool.h>

#include "protocol/ticket.h"

#define OBL_ID_TEXT (2 * OBP_RESERVATION_BYTES + 1)

/* A name of a server, tenant or balancer: 1 to 63 of letters, digits, '.', '_' and '-'; no '.' first. */
bool obl_name_valid(const char *name);
void obl_id_print(const uint8_t id[OBP_RESERVATION_BYTES], char ret_text[OBL_ID_TEXT]);
/* False: not 32 hexadecimal digits. */
bool obl_id_parse(const char *text, uint8_t ret_id[OBP_RESERVATION_BYTES]);

#endif
