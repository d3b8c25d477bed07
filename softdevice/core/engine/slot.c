/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/core/engine/slot.h"

void obd_write32(char *dst, const uint32_t *src, uint32_t m)
{
	uint32_t *d = (uint32_t *)(void *)dst;

	for (uint32_t i = 0; i < OBD_LANES; i++)
		d[i] = (m >> i) & 1 ? src[i] : d[i];
}

void obd_write64(char *dst, const uint64_t *src, uint32_t m)
{
	uint64_t *d = (uint64_t *)(void *)dst;

	for (uint32_t i = 0; i < OBD_LANES; i++)
		d[i] = (m >> i) & 1 ? src[i] : d[i];
}
