/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * outboard-ptxas: stands in for ptxas where Triton makes code for a device that runs PTX only.
 * `outboard run` names it to Triton (ADR 39).
 *
 *     outboard-ptxas [OPTION]... FILE.ptx -o FILE.cubin
 *
 * The output is the text of the input and a NUL, which is what cuModuleLoadData takes. All other
 * options are accepted and have no effect. --version: as ptxas prints it. Triton takes the version
 * of PTX from it, and keeps code of another version apart in its cache.
 *
 * Exit status: 0; 1 a file cannot be read or written; 2 wrong usage.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failed(const char *verb, const char *path)
{
	fprintf(stderr, "outboard-ptxas: cannot %s %s: %s\n", verb, path, strerror(errno));
	return 1;
}

static int copy(const char *from, const char *to)
{
	char block[65536];
	size_t n;
	FILE *in = fopen(from, "rbe");
	FILE *out = in ? fopen(to, "wbe") : NULL;
	bool written, read;

	if (!in)
		return failed("read", from);
	if (!out) {
		fclose(in);
		return failed("write", to);
	}
	do {
		n = fread(block, 1, sizeof block, in);
		written = fwrite(block, 1, n, out) == n;
	} while (n && written);
	read = !ferror(in);
	written = written && fputc(0, out) != EOF;
	fclose(in);
	if (!read) {
		fclose(out);
		return failed("read", from);
	}
	if (fclose(out) != 0 || !written)
		return failed("write", to);
	return 0;
}

static int version(void)
{
	puts("outboard-ptxas: hands the PTX on, for a device that runs PTX only\n"
	     "Cuda compilation tools, release 13.0, V13.0.0");
	return 0;
}

int main(int argc, char **argv)
{
	const char *in = NULL, *out = NULL;

	for (int i = 1; i < argc; i++) {
		size_t n = strlen(argv[i]);

		if (strcmp(argv[i], "--version") == 0)
			return version();
		if ((strcmp(argv[i], "-o") == 0 || strcmp(argv[i], "--output-file") == 0) &&
			i + 1 < argc)
			out = argv[++i];
		else if (n > 4 && argv[i][0] != '-' && strcmp(argv[i] + n - 4, ".ptx") == 0)
			in = argv[i];
	}
	if (!in || !out) {
		fputs("usage: outboard-ptxas [OPTION]... FILE.ptx -o FILE.cubin\n", stderr);
		return 2;
	}
	return copy(in, out);
}
