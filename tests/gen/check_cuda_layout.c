/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "tests/gen/check_cuda_layout.h"

#include <stdio.h>
#include <string.h>

int main(void)
{
	int wrong = layout_ours_count != layout_theirs_count;
	for (size_t i = 0; i < layout_ours_count && i < layout_theirs_count; i++) {
		const struct layout_row *ours = &layout_ours[i], *theirs = &layout_theirs[i];
		if (strcmp(ours->name, theirs->name) || ours->value != theirs->value) {
			fprintf(stderr, "%s is %lld in base/cuda_types.h and %lld in cuda.h\n",
				ours->name, ours->value, theirs->value);
			wrong = 1;
		}
	}
	printf("%zu numbers compared\n", layout_ours_count);
	return wrong;
}
