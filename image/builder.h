/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obi_builder: collects the kernels and variables of one entry during a scan and makes a struct
 * obi_symbols of them. Lives on the scanner's stack; one thread. Names and parameters are stored as
 * offsets until the end, because the buffers may move.
 */
#ifndef OBI_BUILDER_H
#define OBI_BUILDER_H

#include "base/buf.h"
#include "image/image.h"

#define OBI_VARIABLE_MAX (1u << 20)   /* variables in one entry */
#define OBI_REF_MAX      (1u << 16)   /* texture and surface references in one entry */
#define OBI_NAMES_MAX    (256u << 20) /* bytes of all names */

struct obi_builder {
	struct ob_buf names, params, kernels, variables, refs;
	bool prints, plain;
	uint32_t arch, ptx_version;
};

void obi_builder_init(struct obi_builder *builder);
void obi_builder_fini(struct obi_builder *builder);
/*
 * Adds a kernel without parameters; the pointer is valid until the next kernel is added. NULL: a
 * limit is exceeded, or out of memory; obi_builder_finish then returns the error.
 */
struct obi_kernel *obi_builder_kernel(
	struct obi_builder *builder, const char *name, size_t name_size);
size_t obi_builder_n_kernels(const struct obi_builder *builder);
struct obi_kernel *obi_builder_kernel_at(struct obi_builder *builder, size_t index);
/*
 * Adds `n` zeroed parameters to the kernel; the pointer is valid until the next call of this
 * function.
 */
struct obi_param *obi_builder_params(
	struct obi_builder *builder, struct obi_kernel *kernel, uint32_t n);
struct obi_variable *obi_builder_variable(
	struct obi_builder *builder, const char *name, size_t name_size);
void obi_builder_ref(
	struct obi_builder *builder, const char *name, size_t name_size, bool is_surface);
enum ob_err obi_builder_finish(struct obi_builder *builder, struct obi_symbols *ret);

#endif
