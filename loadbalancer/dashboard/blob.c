/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/dashboard/blob.h"

#include <stdlib.h>

struct obl_blob *obl_blob_ref(struct obl_blob *blob)
{
	blob->refs++;
	return blob;
}

void obl_blob_unref(struct obl_blob *blob)
{
	if (!blob || --blob->refs)
		return;
	*blob->bytes -= blob->size;
	free(blob->data);
	free(blob);
}
