/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/test.h"
#include "transport/token.h"

static char path[64];
static struct ob_cause cause;

static void directory(void)
{
	char name[] = "/tmp/outboard-token-XXXXXX";

	CHECK(mkdtemp(name));
	snprintf(path, sizeof path, "%s/tokens", name);
}

static void directory_remove(void)
{
	unlink(path);
	*strrchr(path, '/') = '\0';
	CHECK(rmdir(path) == 0); /* no temporary file is left */
}

TEST(made_written_read_and_checked)
{
	const struct obt_allow allow = { .value = { [OBT_ALLOW_MEMORY] = 5ull << 30,
						 [OBT_ALLOW_SHARE] = 123456,
						 [OBT_ALLOW_PRIORITY] = 1 } };
	struct obt_tokens tokens = { 0 }, back;
	const struct obt_token *found;
	char text[200][OBT_TOKEN_TEXT];

	directory();
	for (unsigned i = 0; i < 200; i++)
		CHECK(!obt_tokens_add(&tokens, i ? "some name" : "a\nb",
			i % 2 ? OBT_SCOPE_LOOK : OBT_SCOPE_USE, i, i % 3 ? &allow : NULL, text[i]));
	CHECK_STR(tokens.list[0].name, "a?b"); /* one token is one line */
	CHECK(!obt_tokens_write(path, &tokens, &cause));
	CHECK(!obt_tokens_write(path, &tokens, &cause));
	CHECK(!obt_tokens_read(path, &back, &cause));
	CHECK_INT(back.n, 200);
	for (unsigned i = 0; i < 200; i++) {
		enum ob_err err;

		found = NULL;
		err = obt_tokens_check(&back, text[i], 50, &found, &cause);

		CHECK(!memcmp(&back.list[i], &tokens.list[i], sizeof back.list[i]));
		if (i && i <= 50) {
			CHECK(err == OB_ERR_DENIED && !found &&
				strstr(cause.text, "expired")); /* expiry 50 is not after 50 */
			continue;
		}
		CHECK(!err && found == &back.list[i]);
	}
	CHECK(obt_tokens_remove(&back, back.list[100].id));
	CHECK_INT(back.n, 199);
	CHECK(obt_tokens_check(&back, text[100], 50, &found, &cause) == OB_ERR_DENIED &&
		strstr(cause.text, "revoked"));
	CHECK(!obt_tokens_check(&back, text[101], 50, &found, &cause) &&
		!obt_tokens_check(&back, text[199], 50, &found, &cause));
	CHECK(!obt_tokens_remove(&back, tokens.list[100].id));
	obt_tokens_fini(&tokens);
	obt_tokens_fini(&back);
	directory_remove();
}

TEST(limits_of_a_token)
{
	struct obt_allow allow = { { 0 } }, back;
	char text[OBT_ALLOW_TEXT];

	obt_allow_print(&allow, text);
	CHECK_STR(text, "");
	CHECK_INT(obt_allow_set(&allow, "max-memory", "2GiB", &cause), OB_ERR_NONE);
	CHECK_INT(obt_allow_set(&allow, "share", "0.25", &cause), OB_ERR_NONE);
	CHECK_INT(obt_allow_set(&allow, "max-priority", "high", &cause), OB_ERR_NONE);
	CHECK_INT(obt_allow_set(&allow, "idle-timeout", "60", &cause), OB_ERR_NONE);
	CHECK_INT(obt_allow_set(&allow, "max-lanes", "1025", &cause), OB_ERR_ARGUMENT);
	CHECK_INT(obt_allow_set(&allow, "share", "nan", &cause), OB_ERR_ARGUMENT);
	CHECK_INT(obt_allow_set(&allow, "max-memory", "1", &cause), OB_ERR_ARGUMENT);
	CHECK_INT(obt_allow_set(&allow, "warm", "1", &cause), OB_ERR_NOT_FOUND);
	obt_allow_print(&allow, text);
	CHECK_STR(text, "max-memory=2147483648,idle-timeout=60,share=0.25,max-priority=high");
	CHECK(!obt_allow_parse(text, &back) && !memcmp(&back, &allow, sizeof back));
	CHECK(obt_allow_parse("", &back) && obt_allow_parse("share", &back) &&
		obt_allow_parse("share=2", &back) && obt_allow_parse("share=0.5,", &back));
	/* The longest token fits its buffer. */
	for (unsigned i = 0; i < OBT_ALLOW_COUNT; i++)
		allow.value[i] = i == OBT_ALLOW_PRIORITY ? 2
			: i <= OBT_ALLOW_OUTSTANDING     ? 9000000000000000000u
							 : 123457;
	obt_allow_print(&allow, text);
	CHECK(strlen(text) < OBT_ALLOW_TEXT - 40 && strstr(text, "max-priority=normal"));
}

static void line(const char *what)
{
	FILE *file = fopen(path, "w");

	CHECK(file);
	fprintf(file, "01234567 %064d use 0 %s\n", 0, what);
	fclose(file);
}

TEST(lines_with_limits)
{
	static const char *const wrong[] = { "[share=0.5 x", "[share=5] x", "[] x",
		"[shares=0.5] x", "[share=0.5,share] x" };
	struct obt_tokens tokens;

	directory();
	line("[share=0.5] a name");
	CHECK(!obt_tokens_read(path, &tokens, &cause));
	CHECK_STR(tokens.list[0].name, "a name");
	CHECK_INT(tokens.list[0].allow.value[OBT_ALLOW_SHARE], 500000);
	obt_tokens_fini(&tokens);
	line("a name [share=0.5]");
	CHECK(!obt_tokens_read(path, &tokens, &cause));
	CHECK_STR(tokens.list[0].name, "a name [share=0.5]");
	CHECK_INT(tokens.list[0].allow.value[OBT_ALLOW_SHARE], 0);
	obt_tokens_fini(&tokens);
	for (unsigned i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		line(wrong[i]);
		CHECK(obt_tokens_read(path, &tokens, &cause) && strstr(cause.text, "line 1"));
	}
	directory_remove();
}

TEST(what_is_no_token)
{
	struct obt_tokens tokens = { 0 };
	const struct obt_token *found;
	char text[OBT_TOKEN_TEXT], bad[OBT_TOKEN_TEXT + 8];

	CHECK(!obt_tokens_add(&tokens, "x", OBT_SCOPE_USE, 0, NULL, text));
	CHECK(!obt_tokens_check(&tokens, text, 1u << 31, &found, &cause));
	for (size_t n = 0; n < strlen(text); n++) {
		snprintf(bad, sizeof bad, "%.*s", (int)n, text);
		CHECK(obt_tokens_check(&tokens, bad, 0, &found, &cause));
	}
	snprintf(bad, sizeof bad, "%s0", text);
	CHECK(obt_tokens_check(&tokens, bad, 0, &found, &cause));
	/* Every character is compared, those of the id too. */
	for (size_t i = 0; i < strlen(text); i++) {
		snprintf(bad, sizeof bad, "%s", text);
		bad[i] = bad[i] == '0' ? '1' : '0';
		CHECK(obt_tokens_check(&tokens, bad, 0, &found, &cause));
	}
	obt_tokens_fini(&tokens);
}

TEST(files_that_are_wrong)
{
	static const char hash[] =
		"00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
	static const struct {
		const char *format;
		bool right;
	} lines[] = {
		{ "# a comment\n\n", true },
		{ "01234567 %s use 0 name with blanks\n", true },
		{ "01234567 %s look 12345678901 -\n", true },
		{ "0123456 %s use 0 name\n", false },
		{ "01234567 %s root 0 name\n", false },
		{ "01234567 %s use -1 name\n", false },
		{ "01234567 %.63s use 0 name\n", false },
		{ "0123456x %s use 0 name\n", false },
		{ "01234567 %s use\n", false },
		{ "garbage %s\n", false },
	};
	struct obt_tokens tokens;

	directory();
	CHECK(!obt_tokens_read(path, &tokens, &cause) && tokens.n == 0);
	for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
		FILE *file = fopen(path, "we");

		CHECK(file);
		fprintf(file, lines[i].format, hash);
		fclose(file);
		CHECK_INT(obt_tokens_read(path, &tokens, &cause),
			lines[i].right ? OB_ERR_NONE : OB_ERR_ARGUMENT);
		CHECK(lines[i].right || strstr(cause.text, "line 1"));
		if (lines[i].right)
			obt_tokens_fini(&tokens);
	}
	directory_remove();
	snprintf(path, sizeof path, "/nonexistent/tokens");
	tokens = (struct obt_tokens){ 0 };
	CHECK(obt_tokens_write(path, &tokens, &cause));
}

TEST(owner_mode_and_link_are_kept)
{
	struct obt_tokens tokens = { 0 };
	char text[OBT_TOKEN_TEXT], link[sizeof path + 8];
	bool root = geteuid() == 0;
	struct stat st;

	directory();
	umask(0);
	CHECK(!obt_tokens_add(&tokens, "a", OBT_SCOPE_USE, 0, NULL, text));
	CHECK(!obt_tokens_write(path, &tokens, &cause));
	CHECK(stat(path, &st) == 0);
	CHECK_INT(st.st_mode & 0777, 0600);
	CHECK(chmod(path, 0640) == 0 && (!root || chown(path, 1234, 5678) == 0));
	snprintf(link, sizeof link, "%s.link", path);
	CHECK(symlink(path, link) == 0);
	CHECK(!obt_tokens_write(link, &tokens, &cause));
	CHECK(lstat(link, &st) == 0 && S_ISLNK(st.st_mode) && stat(path, &st) == 0);
	CHECK_INT(st.st_mode & 0777, 0640);
	CHECK(!root || (st.st_uid == 1234 && st.st_gid == 5678));
	unlink(link);
	obt_tokens_fini(&tokens);
	directory_remove();
}

TEST(an_owner_that_cannot_be_kept_is_an_error)
{
	struct obt_tokens tokens = { 0 };
	struct stat st;

	if (geteuid() != 0)
		return;
	directory();
	CHECK(!obt_tokens_write(path, &tokens, &cause) && chown(path, 1234, 5678) == 0);
	*strrchr(path, '/') = '\0';
	CHECK(chown(path, 4321, 4321) == 0 && setegid(4321) == 0 && seteuid(4321) == 0);
	path[strlen(path)] = '/';
	CHECK_INT(obt_tokens_write(path, &tokens, &cause), OB_ERR_DENIED);
	CHECK(strstr(cause.text, "its owner cannot be kept"));
	CHECK(seteuid(0) == 0 && setegid(0) == 0 && stat(path, &st) == 0 && st.st_uid == 1234);
	directory_remove();
}

/* Eight writers add a token each, many times: with a lock none is lost. */
TEST(writers_do_not_lose_each_others_changes)
{
	enum { WRITERS = 8, TIMES = 10 };
	struct obt_tokens tokens;
	int status;

	directory();
	for (int i = 0; i < WRITERS; i++) {
		pid_t child = fork();

		CHECK(child >= 0);
		for (int n = 0; child == 0 && n < TIMES; n++) {
			char text[OBT_TOKEN_TEXT];
			int fd;

			if (obt_tokens_lock(path, true, &fd, &cause) ||
				obt_tokens_read(path, &tokens, &cause) ||
				obt_tokens_add(&tokens, "a", OBT_SCOPE_USE, 0, NULL, text) ||
				obt_tokens_write(path, &tokens, &cause))
				_exit(1);
			obt_tokens_fini(&tokens);
			close(fd);
		}
		if (child == 0)
			_exit(0);
	}
	for (int i = 0; i < WRITERS; i++)
		CHECK(wait(&status) > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0);
	CHECK(!obt_tokens_read(path, &tokens, &cause));
	CHECK_INT(tokens.n, WRITERS * TIMES);
	obt_tokens_fini(&tokens);
	directory_remove();
}

TEST(what_is_no_file_is_not_locked)
{
	int fd;

	directory();
	CHECK_INT(obt_tokens_lock(path, false, &fd, &cause), OB_ERR_IO);
	CHECK(mkfifo(path, 0600) == 0);
	CHECK_INT(obt_tokens_lock(path, true, &fd, &cause), OB_ERR_IO);
	CHECK(strstr(cause.text, "not a regular file"));
	directory_remove();
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
