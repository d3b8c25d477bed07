/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "compression/codec.h"

#include <limits.h>
#include <lz4.h>
#include <string.h>
#include <zstd.h>

static enum ob_err lz4_block(const void *src, size_t src_size, void *dst, size_t dst_size)
{
	int n;

	if (src_size > INT_MAX || dst_size > INT_MAX)
		return OB_ERR_COMPRESSED;
	n = LZ4_decompress_safe(src, dst, (int)src_size, (int)dst_size);
	return n >= 0 && (size_t)n == dst_size ? OB_ERR_NONE : OB_ERR_COMPRESSED;
}

static enum ob_err zstd_frames(const void *src, size_t src_size, void *dst, size_t dst_size)
{
	size_t n = ZSTD_decompress(dst, dst_size, src, src_size);

	return !ZSTD_isError(n) && n == dst_size ? OB_ERR_NONE : OB_ERR_COMPRESSED;
}

enum ob_err obz_decompress(enum obz_codec codec, const void *src, size_t src_size, void *dst, size_t dst_size)
{
	switch (codec) {
	case OBZ_NONE:
		if (src_size != dst_size)
			return OB_ERR_COMPRESSED;
		if (dst_size)
			memcpy(dst, src, dst_size);
		return OB_ERR_NONE;
	case OBZ_LZ4:
		return lz4_block(src, src_size, dst, dst_size);
	case OBZ_ZSTD:
		return zstd_frames(src, src_size, dst, dst_size);
	}
	return OB_ERR_COMPRESSED;
}
