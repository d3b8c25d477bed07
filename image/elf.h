/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obi_elf: reads from NVIDIA's cubin what a launch needs: kernels with their parameter layout and
 * launch bounds, and variables. Checks every offset. No state; any thread. The meanings of sections
 * and records were derived from nvcc's output.
 */
#ifndef OBI_ELF_H
#define OBI_ELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "image/builder.h"

bool obi_elf_is(const void *data, size_t size);
/* Returns the SM number from e_flags (90 for sm_90); 0 when the header is not a cubin's. */
uint32_t obi_elf_arch(const void *elf, size_t size);
/* Adds every kernel and variable of a complete cubin to the builder. */
enum ob_err obi_elf_scan(const uint8_t *elf, size_t size, struct obi_builder *builder);

#endif
