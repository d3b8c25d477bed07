/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Base64 with padding (RFC 4648, section 4), in which etcd's gateway writes keys and values. */
#ifndef OBL_BASE64_H
#define OBL_BASE64_H

#include "base/buf.h"

void obl_base64_encode(struct ob_buf *buf, const void *data, size_t size);
/*
 * Decodes exactly `size` characters. ret_data has room for 3 * (size / 4) bytes. False: not base64
 * in its one valid form.
 */
bool obl_base64_decode(const char *text, size_t size, uint8_t *ret_data, size_t *ret_size);

#endif
