/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The text form of a device's UUID as NVIDIA's tools write it: "GPU-" and 32 hexadecimal digits in
 * groups of 8, 4, 4, 4 and 12. No state; any thread.
 */
#ifndef OB_UUID_H
#define OB_UUID_H

#include <stdbool.h>
#include <stdint.h>

#define OB_UUID_TEXT 41u /* bytes, NUL included */

void ob_uuid_print(const uint8_t uuid[16], char ret_text[OB_UUID_TEXT]);
/* Either case of the digits is accepted. False: not in this form; ret_uuid is undefined then. */
bool ob_uuid_parse(const char *text, uint8_t ret_uuid[16]);
#endif
