/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The file of the filling `static`: its lock, damage, a file that cannot be written. */
#include <sys/stat.h>

#include "client.h"

static char folder[] = "/tmp/outboard-registry-XXXXXX";
static char path[64], new_path[80], lock_path[80], url[80];
static struct obl_registry_options options = { .url = url };

static void begin(void)
{
	client_begin();
	CHECK(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/r.json", folder);
	snprintf(new_path, sizeof new_path, "%s.new", path);
	snprintf(lock_path, sizeof lock_path, "%s.lock", path);
	snprintf(url, sizeof url, "static:%s", path);
}

static void end(void)
{
	client_end();
	unlink(path);
	unlink(lock_path);
	CHECK_INT(rmdir(folder), 0); /* nothing else is left */
}

static void write_text(const char *text)
{
	FILE *file = fopen(path, "w");

	CHECK(file);
	fputs(text, file);
	fclose(file);
}

static void refused(enum ob_err err, const char *words)
{
	struct obl_watcher watcher = { 0 };
	struct obl_registry *registry;
	struct ob_cause cause = { 0 };

	CHECK_INT(obl_registry_open(client_loop, &options, &watcher, &registry, &cause), err);
	if (!strstr(cause.text, words))
		TEST_FAIL("\"%s\" does not say \"%s\"", cause.text, words);
	client_turn();
}

TEST(one_balancer)
{
	struct client c;
	char process[32];

	begin();
	client_open(&c, &options);
	snprintf(process, sizeof process, "process %d", (int)getpid());
	refused(OB_ERR_LIMIT, process);
	client_close(&c);
	client_open(&c, &options);
	client_close(&c);
	end();
}

TEST(damaged)
{
	static const char *const texts[] = { "", "{", "[]", "\"x\"", "{\"format\": \"x\"}",
		"{\"format\": \"outboard registry\", \"version\": 1}",
		"{\"format\": \"outboard registry\", \"version\": 1, \"revision\": -1, "
		"\"entries\": []}",
		"{\"format\": \"outboard registry\", \"version\": 1, \"revision\": 1, \"entries\": "
		"{}}",
		"{\"format\": \"outboard registry\", \"version\": 1, \"revision\": 1, \"entries\": "
		"[1]}",
		"{\"format\": \"outboard registry\", \"version\": 1, \"revision\": 1, \"entries\": "
		"[{\"key\": \"\", \"revision\": 1, \"value\": \"\"}]}",
		"{\"format\": \"outboard registry\", \"version\": 1, \"revision\": 1, \"entries\": "
		"[{\"key\": \"a\", \"revision\": 2, \"value\": \"\"}]}",
		"{\"format\": \"outboard registry\", \"version\": 1, \"revision\": 1, \"entries\": "
		"[{\"key\": \"a\", \"revision\": 1}]}",
		"{\"format\": \"outboard registry\", \"version\": 1, \"revision\": 1, \"entries\": "
		"[{\"key\": \"a\", \"revision\": 1, \"value\": \"\"}, {\"key\": \"a\", "
		"\"revision\": 1, "
		"\"value\": \"\"}]}" };

	begin();
	for (unsigned i = 0; i < sizeof texts / sizeof *texts; i++) {
		write_text(texts[i]);
		refused(OB_ERR_IO, "is damaged");
	}
	write_text("{\"format\": \"outboard registry\", \"version\": 2}");
	refused(OB_ERR_VERSION, "use the version");
	unlink(path);
	CHECK_INT(mkdir(path, 0700), 0);
	refused(OB_ERR_IO, "not a regular file");
	CHECK_INT(rmdir(path), 0);
	end();
}

TEST(no_such_folder)
{
	begin();
	snprintf(url, sizeof url, "static:%s/none/r.json", folder);
	refused(OB_ERR_IO, "cannot open");
	snprintf(url, sizeof url, "static:");
	refused(OB_ERR_URL, "names no file");
	snprintf(url, sizeof url, "redis:x");
	refused(OB_ERR_URL, "use memory, static:");
	end();
}

/* Every prefix of a valid file is reported as damaged. */
TEST(cut)
{
	struct client c;
	char text[1024];
	size_t size;
	FILE *file;

	begin();
	client_open(&c, &options);
	client_put(&c, "servers/a", "{\"x\": \"\xc3\xa4\"}");
	client_put(&c, "servers/b", "2");
	client_close(&c);
	file = fopen(path, "r");
	CHECK(file);
	size = fread(text, 1, sizeof text - 1, file);
	fclose(file);
	while (size > 0 && text[size - 1] != '}')
		size--;
	CHECK(size > 100);
	while (size-- > 0) {
		text[size] = 0;
		write_text(text);
		refused(OB_ERR_IO, "is damaged");
	}
	end();
}

/* What cannot be saved is not made, and is refused until it can be saved. */
TEST(cannot_be_written)
{
	struct client c;
	struct answer answers[2];
	struct obl_change change = { .key = "b", .value = "2" };
	struct obl_txn txn = { .n_changes = 1, .changes = &change };
	struct stat stat_;

	begin();
	client_open(&c, &options);
	client_wait_usable(&c);
	client_put(&c, "a", "1");
	CHECK_INT(stat(path, &stat_), 0);
	CHECK_INT(stat_.st_mode & 0777, 0600);
	CHECK_INT(mkdir(new_path, 0700), 0);
	client_start(&c, &txn, &answers[0]);
	client_start(&c, &txn, &answers[1]);
	RUN_UNTIL(answers[0].done && answers[1].done);
	for (unsigned i = 0; i < 2; i++) {
		CHECK_INT(answers[i].err, OB_ERR_REFUSED);
		CHECK(strstr(answers[i].cause.text, path));
	}
	RUN_UNTIL(!c.usable);
	CHECK(strstr(c.why.text, path));
	client_txn(&c, &txn, &answers[0]);
	CHECK_INT(answers[0].err, OB_ERR_REFUSED);
	client_range(&c, "", &answers[0]);
	CHECK_INT(answers[0].err, OB_ERR_REFUSED);
	CHECK_INT(rmdir(new_path), 0);
	RUN_UNTIL(c.usable);
	CHECK_INT(c.mirror.n, 1);
	CHECK(client_put(&c, "b", "3") > client_revision(&c, "a"));
	client_close(&c);
	client_open(&c, &options);
	client_wait_usable(&c);
	CHECK_STR(client_value(&c, "b"), "3");
	client_close(&c);
	end();
}

/* A handle is closed while its last transaction is saved: the file has it. */
TEST(closed_while_saving)
{
	struct client c;
	struct answer answer;
	struct obl_change change = { .key = "a", .value = "1" };
	struct obl_txn txn = { .n_changes = 1, .changes = &change };

	begin();
	client_open(&c, &options);
	client_start(&c, &txn, &answer);
	client_close(&c);
	CHECK_INT(answer.err, OB_ERR_CLOSED);
	client_open(&c, &options);
	client_wait_usable(&c);
	CHECK_INT(c.mirror.n, 1);
	client_close(&c);
	end();
}

/* Also when it cannot be saved. */
TEST(closed_while_failing)
{
	struct client c;
	struct answer answer;
	struct obl_change change = { .key = "a", .value = "1" };
	struct obl_txn txn = { .n_changes = 1, .changes = &change };

	begin();
	client_open(&c, &options);
	client_wait_usable(&c);
	CHECK_INT(mkdir(new_path, 0700), 0);
	client_start(&c, &txn, &answer);
	client_close(&c);
	CHECK_INT(answer.err, OB_ERR_CLOSED);
	client_open(&c, &options);
	client_wait_usable(&c);
	client_txn(&c, &txn, &answer);
	CHECK_INT(answer.err, OB_ERR_REFUSED);
	client_close(&c);
	CHECK_INT(rmdir(new_path), 0);
	end();
}

int main(int argc, char **argv)
{
	test_fds_allowed = 2; /* libuv keeps a pipe for signals */
	setenv("OUTBOARD_LOG", "error", 1);
	return test_main(argc, argv);
}
