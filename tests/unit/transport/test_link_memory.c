/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The files of what is remembered of links: what is written is read again; anything else in the
 * folder is not used; few files are kept; several processes write at a time.
 */
#include "transport/link_memory.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/hash.h"
#include "tests/test.h"

#define KEY "tcp gpu-host 14800 192.0.2.0"

static const struct obt_link_memory known = { .rate_out = 12500000,
	.rate_in = OBT_RATE_MAX,
	.round_trip = 1,
	.cache_naming = OBT_RATE_MIN,
	.stripes_download = 77777 };
static char cache[64], folder[80];

static void begin(void)
{
	snprintf(cache, sizeof cache, "/tmp/link-memory-XXXXXX");
	CHECK(mkdtemp(cache) != NULL);
	snprintf(folder, sizeof folder, "%s/outboard", cache);
	setenv("XDG_CACHE_HOME", cache, 1);
	setenv("HOME", "/dev/null", 1);
}

/* Number of entries of the folder whose names have this length; 0: all. */
static unsigned entries(size_t length)
{
	DIR *walk = opendir(folder);
	struct dirent *entry;
	unsigned n = 0;

	while (walk && (entry = readdir(walk)))
		n += entry->d_name[0] != '.' && (!length || strlen(entry->d_name) == length);
	if (walk)
		closedir(walk);
	return n;
}

static void end(void)
{
	char command[192];

	snprintf(command, sizeof command, "chmod -R u+rwx %s; rm -rf %s", cache, cache);
	CHECK_INT(system(command), 0);
}

static const char *path_of(const char *key)
{
	static char path[160];

	snprintf(path, sizeof path, "%s/link-%016llx", folder,
		(unsigned long long)ob_hash(OB_HASH_START, key, strlen(key)));
	return path;
}

static void put(const char *path, const void *bytes, size_t size)
{
	FILE *file = fopen(path, "w");

	CHECK(file && fwrite(bytes, 1, size, file) == size && fclose(file) == 0);
}

/* A file with these lines, a right title and a right checksum. */
static void put_lines(const char *title, const char *lines)
{
	char text[4096];
	int n = snprintf(text, sizeof text, "%s\nkey " KEY "\n%s", title, lines);

	n += snprintf(text + n, sizeof text - (size_t)n, "check %016llx\n",
		(unsigned long long)ob_hash(OB_HASH_START, text, (size_t)n));
	put(path_of(KEY), text, (size_t)n);
}

static bool readable(void)
{
	struct obt_link_memory got = { .rate_out = 99 };
	enum ob_err err = obt_link_read(KEY, &got, NULL);

	CHECK(!err || got.rate_out == 99); /* written on success only */
	return !err;
}

TEST(what_is_written_is_read)
{
	struct obt_link_memory got, wrong = { .rate_out = OBT_RATE_MAX + 1, .rate_in = 5000 };
	struct stat st;

	begin();
	CHECK(!readable());
	CHECK_INT(obt_link_write(KEY, &known, NULL), OB_ERR_NONE);
	CHECK_INT(obt_link_read(KEY, &got, NULL), OB_ERR_NONE);
	CHECK_MEM(&got, &known, sizeof got);
	CHECK(stat(folder, &st) == 0 && (st.st_mode & 07777) == 0700);
	CHECK(stat(path_of(KEY), &st) == 0 && (st.st_mode & 07777) == 0600);
	/* a number beyond its limits is not written */
	CHECK_INT(obt_link_write(KEY, &wrong, NULL), OB_ERR_NONE);
	CHECK_INT(obt_link_read(KEY, &got, NULL), OB_ERR_NONE);
	CHECK(got.rate_out == 0 && got.rate_in == 5000);
	CHECK_INT(entries(0), 1);
	end();
}

TEST(a_damaged_file_is_not_used)
{
	char text[OBT_LINK_FILE_MAX], other[OBT_LINK_FILE_MAX];
	size_t size;
	FILE *file;

	begin();
	CHECK_INT(obt_link_write(KEY, &known, NULL), OB_ERR_NONE);
	file = fopen(path_of(KEY), "r");
	size = fread(text, 1, sizeof text, file);
	fclose(file);
	for (size_t i = 0; i < size; i++)
		for (unsigned bit = 0; bit < 8; bit++) {
			memcpy(other, text, size);
			other[i] = (char)(other[i] ^ 1 << bit);
			put(path_of(KEY), other, size);
			CHECK(!readable());
		}
	for (size_t i = 0; i < size; i++) {
		put(path_of(KEY), text, i);
		CHECK(!readable());
	}
	put(path_of(KEY), text, size);
	CHECK(readable());
	/* the file of another link under this link's name */
	CHECK_INT(obt_link_write(KEY "x", &known, NULL), OB_ERR_NONE);
	snprintf(other, sizeof other, "%s", path_of(KEY "x"));
	CHECK_INT(rename(other, path_of(KEY)), 0);
	CHECK(!readable());
	end();
}

TEST(a_false_file_is_not_used)
{
	static const char *const bad[] = { "out 999\n", "out 1000000000001\n", "out 0\n",
		"out -1\n", "out nan\n", "out inf\n", "out 1e9\n", "out 99999999999999999999999\n",
		"out\n", "out  5000\n", "out 5000 \n", "round-trip 60000000001\n", "unknown 5000\n",
		"\n", "out 5000\n\n", "ou 5000\n", "outt 5000\n" };
	char long_text[OBT_LINK_FILE_MAX + 100];

	begin();
	CHECK_INT(obt_link_write(KEY, &known, NULL), OB_ERR_NONE);
	put_lines("outboard-link 1", "out 5000\n");
	CHECK(readable());
	put_lines("outboard-link 1", "");
	CHECK(readable());
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		test_subject = bad[i];
		put_lines("outboard-link 1", bad[i]);
		CHECK(!readable());
	}
	test_subject = NULL;
	put_lines("outboard-link 2", "out 5000\n");
	CHECK(!readable());
	memset(long_text, '0', sizeof long_text);
	memcpy(long_text, "out ", 4);
	memcpy(long_text + sizeof long_text - 6, "5000\n", 6);
	put_lines("outboard-link 1", long_text);
	CHECK(!readable());
	end();
}

TEST(only_plain_files_of_this_user)
{
	char real[128], moved[96];

	begin();
	CHECK_INT(obt_link_write(KEY, &known, NULL), OB_ERR_NONE);
	snprintf(real, sizeof real, "%s/elsewhere", cache);
	CHECK_INT(rename(path_of(KEY), real), 0);
	CHECK_INT(symlink(real, path_of(KEY)), 0);
	CHECK(!readable());
	/* writing replaces the link and leaves alone what it points to */
	CHECK_INT(truncate(real, 0), 0);
	CHECK_INT(obt_link_write(KEY, &known, NULL), OB_ERR_NONE);
	CHECK(readable());
	CHECK_INT(truncate(real, 0), 0);
	CHECK(readable());
	CHECK_INT(unlink(path_of(KEY)), 0);
	CHECK_INT(mkfifo(path_of(KEY), 0600), 0);
	CHECK(!readable()); /* and does not wait for a writer */
	CHECK_INT(unlink(path_of(KEY)), 0);
	CHECK_INT(obt_link_write(KEY, &known, NULL), OB_ERR_NONE);
	if (geteuid() == 0) {
		CHECK_INT(chown(path_of(KEY), 12345, 12345), 0);
		CHECK(!readable());
		CHECK_INT(chown(path_of(KEY), 0, 0), 0);
		CHECK_INT(chown(folder, 12345, 12345), 0);
		CHECK(!readable());
		CHECK_INT(obt_link_write(KEY, &known, NULL), OB_ERR_UNSUPPORTED);
		CHECK_INT(chown(folder, 0, 0), 0);
	}
	CHECK(readable());
	CHECK_INT(chmod(folder, 0770), 0);
	CHECK(!readable());
	CHECK_INT(obt_link_write(KEY, &known, NULL), OB_ERR_UNSUPPORTED);
	CHECK_INT(chmod(folder, 0700), 0);
	/* the folder itself is a link */
	snprintf(moved, sizeof moved, "%s/moved", cache);
	CHECK_INT(rename(folder, moved), 0);
	CHECK_INT(symlink(moved, folder), 0);
	CHECK(!readable());
	CHECK_INT(obt_link_write(KEY, &known, NULL), OB_ERR_UNSUPPORTED);
	end();
}

TEST(folders)
{
	begin();
	setenv("XDG_CACHE_HOME", "relative", 1);
	CHECK_INT(obt_link_write(KEY, &known, NULL), OB_ERR_UNSUPPORTED); /* HOME is /dev/null */
	setenv("HOME", cache, 1);
	CHECK_INT(obt_link_write(KEY, &known, NULL), OB_ERR_NONE);
	snprintf(folder, sizeof folder, "%s/.cache/outboard", cache);
	CHECK(entries(0) == 1 && readable());
	unsetenv("HOME");
	unsetenv("XDG_CACHE_HOME");
	CHECK(!readable());
	CHECK_INT(obt_link_write(KEY, &known, NULL), OB_ERR_UNSUPPORTED);
	end();
}

TEST(few_files_are_kept)
{
	struct timespec times[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };
	char key[128], left[192], foreign[128];

	begin();
	CHECK_INT(obt_link_write(KEY, &known, NULL), OB_ERR_NONE);
	snprintf(left, sizeof left, "%s.1234.5", path_of(KEY));
	put(left, "x", 1);
	CHECK_INT(utimensat(AT_FDCWD, left, times, 0), 0);
	snprintf(foreign, sizeof foreign, "%s/profile-1", folder);
	put(foreign, "x", 1);
	CHECK_INT(utimensat(AT_FDCWD, foreign, times, 0), 0);
	for (unsigned i = 0; i < OBT_LINKS_MAX - 1; i++) {
		snprintf(key, sizeof key, "tcp host%u 1 192.0.2.0", i);
		CHECK_INT(obt_link_write(key, &known, NULL), OB_ERR_NONE);
		times[1].tv_sec = 2000 + i;
		CHECK_INT(utimensat(AT_FDCWD, path_of(key), times, 0), 0);
	}
	CHECK_INT(entries(21), OBT_LINKS_MAX);
	CHECK(access(left, F_OK) != 0); /* a writer that was killed had left it */
	/* one more: the oldest goes, which is that of host0 */
	CHECK_INT(obt_link_write("tcp more 1 192.0.2.0", &known, NULL), OB_ERR_NONE);
	CHECK_INT(entries(21), OBT_LINKS_MAX);
	CHECK(access(path_of("tcp host0 1 192.0.2.0"), F_OK) != 0);
	CHECK(access(path_of("tcp host1 1 192.0.2.0"), F_OK) == 0);
	/* one that exists is replaced, and nothing goes */
	CHECK_INT(obt_link_write("tcp host1 1 192.0.2.0", &known, NULL), OB_ERR_NONE);
	CHECK_INT(entries(21), OBT_LINKS_MAX);
	CHECK(access(foreign, F_OK) == 0 && readable());
	/* too many, whoever made them: a few go with each new file */
	for (unsigned i = 0; i < 4; i++) {
		snprintf(key, sizeof key, "%s/link-%016x", folder, i);
		put(key, "x", 1);
		CHECK_INT(utimensat(AT_FDCWD, key, times, 0), 0);
	}
	CHECK_INT(obt_link_write("tcp last 1 192.0.2.0", &known, NULL), OB_ERR_NONE);
	CHECK_INT(entries(21), OBT_LINKS_MAX);
	end();
}

TEST(several_write_at_a_time)
{
	enum { WRITERS = 4, ROUNDS = 200 };
	pid_t writers[WRITERS];
	struct obt_link_memory got;

	begin();
	CHECK_INT(obt_link_write(KEY, &known, NULL), OB_ERR_NONE);
	for (unsigned w = 0; w < WRITERS; w++)
		if ((writers[w] = fork()) == 0) {
			struct obt_link_memory mine = { .rate_out = 5000 + w, .rate_in = 5000 + w };

			for (unsigned i = 0; i < ROUNDS; i++)
				if (obt_link_write(KEY, &mine, NULL))
					_exit(1);
			_exit(0);
		}
	for (unsigned i = 0; i < ROUNDS; i++) {
		CHECK_INT(obt_link_read(KEY, &got, NULL), OB_ERR_NONE);
		CHECK(got.rate_out == known.rate_out || got.rate_out == got.rate_in);
	}
	for (unsigned w = 0; w < WRITERS; w++) {
		int status;

		CHECK(waitpid(writers[w], &status, 0) == writers[w] && status == 0);
	}
	CHECK_INT(obt_link_read(KEY, &got, NULL), OB_ERR_NONE);
	CHECK(got.rate_out >= 5000 && got.rate_out < 5000 + WRITERS);
	CHECK_INT(entries(0), 1);
	end();
}

TEST(nothing_is_kept_of_this_machine)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct obt_url url = { .scheme = OBT_TCP, .host = "localhost", .port = "1" };
	socklen_t size = sizeof address;
	struct obt_stream stream = { .fd = socket(AF_INET, SOCK_STREAM, 0) };
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	char key[OBT_LINK_KEY_MAX];

	CHECK_INT(bind(listener, (struct sockaddr *)&address, size), 0);
	CHECK_INT(listen(listener, 1), 0);
	CHECK_INT(getsockname(listener, (struct sockaddr *)&address, &size), 0);
	CHECK_INT(connect(stream.fd, (struct sockaddr *)&address, size), 0);
	CHECK(!obt_link_key(&url, &stream, key));
	close(stream.fd);
	close(listener);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
