/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The parts of `outboard smi`: what it prints of a view of the server's devices. `only` is the
 * place of the one device to print, or OBX_SMI_ALL. Main thread.
 */
#ifndef OBX_SMI_H
#define OBX_SMI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loadbalancer/view.h"

#define OBX_SMI_ALL   UINT32_MAX
#define OBX_SMI_VALUE 640u /* bytes of a printed value, NUL included */

struct obx_smi_style {
	bool header, units; /* of CSV */
};

/* The table of nvidia-smi. */
void obx_smi_table(const struct obl_view *view, uint32_t only);
/* One line for each device: name and UUID. */
void obx_smi_list(const struct obl_view *view, uint32_t only);

/* Finds the first name in "a,b,c" that is no field; NULL: all are. apps: fields of processes. */
const char *obx_smi_unknown(const char *fields, bool apps, char *ret_name, size_t size);
/* A header, if wanted, and one line of values for each device, or for each process. */
void obx_smi_csv(const struct obl_view *view, uint32_t only, const char *fields, bool apps,
	struct obx_smi_style style);
/* All fields of each device, a line for each. */
void obx_smi_details(const struct obl_view *view, uint32_t only);
/* One JSON object. */
void obx_smi_json(const struct obl_view *view, uint32_t only);
/* "00000000:B0:00.0", or "N/A". */
void obx_smi_bus_id(const struct obp_load_device *device, char ret_text[OBX_SMI_VALUE]);
/* NVIDIA's driver on the server, or the server's own version. */
const char *obx_smi_driver(const struct obl_view *view);

#endif
