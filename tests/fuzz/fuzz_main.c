/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A main() for a fuzz target without a fuzzing engine. It replays the given files and folders, then
 * mutates them and random bytes for a few seconds, and prints the seed.
 *
 *     fuzz_x [--seconds N] [--seed N] [FILE|FOLDER]...
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "tests/fuzz/fuzz.h"

#define INPUT_MAX  65536u
#define CORPUS_MAX 4096u

static struct {
	uint8_t *data;
	size_t size;
} corpus[CORPUS_MAX];
static unsigned corpus_count;
static uint64_t state;

static uint64_t next_random(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static void add(const char *path)
{
	struct stat st;
	FILE *in;
	DIR *dir;

	if (stat(path, &st) != 0) {
		fprintf(stderr, "%s cannot be read\n", path);
		exit(2);
	}
	if (S_ISDIR(st.st_mode)) {
		struct dirent *entry;
		char name[4096];

		dir = opendir(path);
		while (dir && (entry = readdir(dir)))
			if (entry->d_name[0] != '.') {
				snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
				add(name);
			}
		if (dir)
			closedir(dir);
		return;
	}
	in = fopen(path, "rb");
	if (!in || corpus_count == CORPUS_MAX)
		exit(2);
	corpus[corpus_count].data = malloc(INPUT_MAX);
	corpus[corpus_count].size = fread(corpus[corpus_count].data, 1, INPUT_MAX, in);
	corpus_count++;
	fclose(in);
}

static void mutate(uint8_t *data, size_t *size)
{
	for (unsigned n = 1 + (unsigned)(next_random() % 8); n; n--) {
		size_t at = *size ? next_random() % *size : 0;

		switch (next_random() % 6) {
		case 0:
			if (*size)
				data[at] = (uint8_t)next_random();
			break;
		case 1:
			if (*size)
				data[at] ^= (uint8_t)(1u << next_random() % 8);
			break;
		case 2:
			*size = at;
			break;
		case 3:
			if (*size < INPUT_MAX) {
				memmove(data + at + 1, data + at, *size - at);
				data[at] = (uint8_t)next_random();
				++*size;
			}
			break;
		case 4:
			if (*size >= at + 8) {
				uint64_t word =
					next_random() % 3 ? 1ull << next_random() % 64 : UINT64_MAX;

				memcpy(data + at, &word, 8);
			}
			break;
		default:
			if (*size > at && *size + at < INPUT_MAX) {
				memcpy(data + *size, data, at);
				*size += at;
			}
			break;
		}
	}
}

int main(int argc, char **argv)
{
	unsigned long seconds = 2, runs = 0;
	uint8_t *data = malloc(INPUT_MAX), *exact;
	time_t end;

	state = (uint64_t)time(NULL) * 2654435761u | 1;
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc)
			seconds = strtoul(argv[++i], NULL, 10);
		else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc)
			state = strtoull(argv[++i], NULL, 10);
		else
			add(argv[i]);
	}
	printf("--seed %llu, %u files\n", (unsigned long long)state, corpus_count);
	fflush(stdout);
	for (unsigned i = 0; i < corpus_count; i++)
		LLVMFuzzerTestOneInput(corpus[i].data, corpus[i].size);
	for (end = time(NULL) + (time_t)seconds; time(NULL) < end; runs++) {
		size_t size = 0;

		if (corpus_count) {
			unsigned pick = (unsigned)(next_random() % corpus_count);

			size = corpus[pick].size;
			memcpy(data, corpus[pick].data, size);
		}
		mutate(data, &size);
		/* of exactly its size, so that a sanitizer detects a read past the end */
		exact = malloc(size + 1);
		memcpy(exact, data, size);
		LLVMFuzzerTestOneInput(exact, size);
		free(exact);
	}
	printf("%lu runs\n", runs);
	return runs == 0;
}
