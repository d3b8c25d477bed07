/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Codecs behind one function each. Decompression trusts nothing: the output never exceeds what the caller announces, and a stream
 * that would produce more or fewer bytes is damaged. No state; any thread.
 */
#ifndef OBZ_CODEC_H
#define OBZ_CODEC_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum obz_codec { OBZ_NONE = 0, OBZ_LZ4 = 1, OBZ_ZSTD = 2 };

/* Exactly dst_size bytes into dst. LZ4: one raw block; zstd: one or more frames. OB_ERR_COMPRESSED when the bytes do not fit that. */
enum ob_err obz_decompress(enum obz_codec codec, const void *src, size_t src_size, void *dst, size_t dst_size);

#endif
