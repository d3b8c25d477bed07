/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * What every filling of the registry promises (loadbalancer/registry/registry.h). The environment
 * variable REGISTRY names the filling: "memory", "static" or an etcd's URL.
 */
#include "client.h"

static struct obl_registry_options options;
static char url[256], prefix[64], folder[] = "/tmp/outboard-registry-XXXXXX";
static bool several; /* handles can share the registry */

static void begin(void)
{
	const char *kind = getenv("REGISTRY");

	if (!kind)
		TEST_SKIP("REGISTRY is not set: memory, static or etcd:URL");
	client_begin();
	several = strcmp(kind, "static") != 0;
	if (several) {
		snprintf(url, sizeof url, "%s%s", kind, strcmp(kind, "memory") == 0 ? ":test" : "");
	} else {
		CHECK(mkdtemp(folder));
		snprintf(url, sizeof url, "static:%s/registry.json", folder);
	}
	/* Each case has keys of its own. */
	snprintf(prefix, sizeof prefix, "test-%d-%d/", (int)getppid(), (int)getpid());
	/* No test here is about time-outs, so a busy machine must not cause one. */
	options = (struct obl_registry_options){
		.url = url, .prefix = prefix, .balancer = "b1", .timeout_ms = 60000
	};
}

static void end(void)
{
	char path[300];

	client_end();
	if (several)
		return;
	snprintf(path, sizeof path, "%s/registry.json", folder);
	unlink(path);
	snprintf(path, sizeof path, "%s/registry.json.lock", folder);
	unlink(path);
	CHECK_INT(rmdir(folder), 0);
}

static void begin_with(struct client *client)
{
	begin();
	client_open(client, &options);
	client_wait_usable(client);
}

static void end_with(struct client *client)
{
	client_close(client);
	end();
}

TEST(begins_empty)
{
	struct client c;

	begin_with(&c);
	CHECK_INT(c.resets, 1);
	CHECK_INT(c.synced, 1);
	CHECK_INT(c.changes, 0);
	CHECK_INT(c.leases, 0);
	end_with(&c);
}

TEST(create_change_delete)
{
	struct client c;
	uint64_t first, second;

	begin_with(&c);
	first = client_put(&c, "servers/a", "1");
	RUN_UNTIL(client_revision(&c, "servers/a") == first);
	CHECK_STR(client_value(&c, "servers/a"), "1");
	second = client_put(&c, "servers/a", "2");
	CHECK(second > first);
	RUN_UNTIL(client_revision(&c, "servers/a") == second);
	CHECK_STR(client_value(&c, "servers/a"), "2");
	CHECK(client_put(&c, "servers/a", NULL) > second);
	RUN_UNTIL(c.mirror.n == 0);
	CHECK_INT(c.changes, 3);
	end_with(&c);
}

TEST(compare)
{
	struct client c;
	struct answer answer;
	struct obl_compare compares[2] = { { .key = "ledger/a" }, { .key = "reservations/1" } };
	struct obl_change changes[2] = { { .key = "ledger/a", .value = "20" },
		{ .key = "reservations/1", .value = "10" } };
	struct obl_txn txn = { 2, 2, compares, changes };
	const struct obl_row *row;

	begin_with(&c);
	compares[0].revision = client_put(&c, "ledger/a", "10");
	client_txn(&c, &txn, &answer);
	CHECK(answer.err == OB_ERR_NONE && answer.succeeded);
	CHECK(answer.revision > compares[0].revision);
	RUN_UNTIL(client_revision(&c, "reservations/1") == answer.revision);
	CHECK_INT(client_revision(&c, "ledger/a"), answer.revision); /* one revision for all */

	/* The ledger has changed, and the reservation exists. */
	client_txn(&c, &txn, &answer);
	CHECK(answer.err == OB_ERR_NONE && !answer.succeeded);
	CHECK_INT(answer.n, 2);
	row = obl_table_find(&answer.found, "ledger/a");
	CHECK(row && row->revision == client_revision(&c, "ledger/a"));
	CHECK_STR(row->value, "20");
	CHECK_STR(obl_table_find(&answer.found, "reservations/1")->value, "10");
	answer_fini(&answer);

	/* A key that does not exist has revision 0. */
	compares[0].revision = client_revision(&c, "ledger/a");
	compares[1] = (struct obl_compare){ .key = "reservations/2", .revision = 7 };
	client_txn(&c, &txn, &answer);
	CHECK(answer.err == OB_ERR_NONE && !answer.succeeded);
	CHECK_INT(answer.found.n, 1);
	CHECK(!obl_table_find(&answer.found, "reservations/2"));
	answer_fini(&answer);
	CHECK_STR(client_value(&c, "ledger/a"), "20");
	end_with(&c);
}

TEST(without_changes)
{
	struct client c;
	struct answer answer;
	struct obl_compare compare = { .key = "a" };
	struct obl_change change = { .key = "never/there", .value = NULL };
	struct obl_txn txn = { 1, 0, &compare, &change };
	uint64_t before;

	begin_with(&c);
	compare.revision = before = client_put(&c, "a", "1");
	client_txn(&c, &txn, &answer);
	CHECK(answer.err == OB_ERR_NONE && answer.succeeded && answer.revision >= before);
	txn.n_changes = 1; /* deletes a key that does not exist */
	client_txn(&c, &txn, &answer);
	CHECK(answer.err == OB_ERR_NONE && answer.succeeded && answer.revision >= before);
	txn = (struct obl_txn){ 0 };
	client_txn(&c, &txn, &answer);
	CHECK(answer.err == OB_ERR_NONE && answer.succeeded);
	client_put(&c, "b", "1");
	RUN_UNTIL(client_revision(&c, "b"));
	CHECK_INT(c.changes, 2);
	end_with(&c);
}

TEST(range)
{
	struct client c;
	struct answer answer;

	begin_with(&c);
	client_put(&c, "servers/b", "2");
	client_put(&c, "servers/a", "1");
	client_put(&c, "servers0", "no");
	client_put(&c, "server", "no");
	client_range(&c, "servers/", &answer);
	CHECK(answer.err == OB_ERR_NONE);
	CHECK_INT(answer.n, 2);
	CHECK_STR(answer.found.rows[0].key, "servers/a");
	CHECK_STR(answer.found.rows[1].value, "2");
	answer_fini(&answer);
	client_range(&c, "", &answer);
	CHECK_INT(answer.n, 4);
	answer_fini(&answer);
	client_range(&c, "tenants/", &answer);
	CHECK(answer.err == OB_ERR_NONE && answer.n == 0 && answer.revision);
	end_with(&c);
}

TEST(bytes)
{
	struct client c;
	static char key[OBL_KEY_MAX + 2], value[OBL_VALUE_MAX + 2];
	static const char odd[] = "\"\\/{}\n\t\x01\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80";
	struct obl_change change = { .key = key, .value = value };
	struct obl_txn txn = { .n_changes = 1, .changes = &change };
	struct answer answer;

	begin_with(&c);
	memset(key, 'k', OBL_KEY_MAX);
	memset(value, 'v', OBL_VALUE_MAX);
	client_put(&c, key, value);
	client_put(&c, odd, odd);
	client_put(&c, "empty", "");
	RUN_UNTIL(client_revision(&c, "empty"));
	CHECK_STR(client_value(&c, key), value);
	CHECK_STR(client_value(&c, odd), odd);
	CHECK_STR(client_value(&c, "empty"), "");

	key[OBL_KEY_MAX] = 'k';
	client_txn(&c, &txn, &answer);
	CHECK_INT(answer.err, OB_ERR_LIMIT);
	key[OBL_KEY_MAX] = 0;
	value[OBL_VALUE_MAX] = 'v';
	client_txn(&c, &txn, &answer);
	CHECK_INT(answer.err, OB_ERR_LIMIT);
	value[0] = (char)0xff;
	value[1] = 0;
	client_txn(&c, &txn, &answer);
	CHECK_INT(answer.err, OB_ERR_ARGUMENT);
	value[0] = 0;
	change.key = "";
	client_txn(&c, &txn, &answer);
	CHECK_INT(answer.err, OB_ERR_ARGUMENT);
	change.key = "leader";
	client_txn(&c, &txn, &answer);
	CHECK_INT(answer.err, OB_ERR_ARGUMENT);
	client_range(&c, "\xc3", &answer);
	CHECK_INT(answer.err, OB_ERR_ARGUMENT);
	end_with(&c);
}

TEST(many_operations_of_one_transaction)
{
	struct client c;
	struct answer answer;
	static char keys[OBL_TXN_OPS_MAX + 1][16];
	struct obl_compare compares[OBL_TXN_OPS_MAX + 1] = { 0 };
	struct obl_change changes[OBL_TXN_OPS_MAX + 1] = { 0 };
	struct obl_txn txn = { OBL_TXN_OPS_MAX, OBL_TXN_OPS_MAX, compares, changes };

	begin_with(&c);
	for (unsigned i = 0; i <= OBL_TXN_OPS_MAX; i++) {
		snprintf(keys[i], sizeof keys[i], "k%03u", i);
		compares[i].key = changes[i].key = keys[i];
		changes[i].value = "1";
	}
	client_txn(&c, &txn, &answer);
	CHECK(answer.err == OB_ERR_NONE && answer.succeeded);
	RUN_UNTIL(c.mirror.n == OBL_TXN_OPS_MAX);
	client_txn(&c, &txn, &answer);
	CHECK(!answer.succeeded && answer.found.n == OBL_TXN_OPS_MAX);
	answer_fini(&answer);
	txn.n_compares = OBL_TXN_OPS_MAX + 1;
	client_txn(&c, &txn, &answer);
	CHECK_INT(answer.err, OB_ERR_LIMIT);
	txn = (struct obl_txn){ 0, OBL_TXN_OPS_MAX + 1, NULL, changes };
	client_txn(&c, &txn, &answer);
	CHECK_INT(answer.err, OB_ERR_LIMIT);
	changes[1].key = changes[0].key;
	txn.n_changes = 2;
	client_txn(&c, &txn, &answer);
	CHECK_INT(answer.err, OB_ERR_ARGUMENT);
	end_with(&c);
}

TEST(largest_transaction)
{
	struct client c;
	struct answer answer;
	static char keys[OBL_TXN_OPS_MAX][OBL_KEY_MAX + 1], value[OBL_VALUE_MAX + 1];
	struct obl_compare compares[OBL_TXN_OPS_MAX] = { 0 };
	struct obl_change changes[OBL_TXN_OPS_MAX] = { 0 };
	struct obl_txn txn = { OBL_TXN_OPS_MAX, OBL_TXN_OPS_MAX, compares, changes };

	begin_with(&c);
	memset(value, 'v', OBL_VALUE_MAX);
	for (unsigned i = 0; i < OBL_TXN_OPS_MAX; i++) {
		memset(keys[i], 'k', OBL_KEY_MAX);
		keys[i][0] = (char)('0' + i);
		compares[i].key = changes[i].key = keys[i];
		changes[i].value = value;
	}
	client_txn(&c, &txn, &answer);
	CHECK(answer.err == OB_ERR_NONE && answer.succeeded);
	RUN_UNTIL(c.mirror.n == OBL_TXN_OPS_MAX);
	CHECK_STR(client_value(&c, keys[OBL_TXN_OPS_MAX - 1]), value);
	client_txn(&c, &txn, &answer);
	CHECK(answer.err == OB_ERR_NONE && !answer.succeeded);
	CHECK_INT(answer.found.n, OBL_TXN_OPS_MAX);
	CHECK_STR(answer.found.rows[0].value, value);
	answer_fini(&answer);
	end_with(&c);
}

TEST(many_transactions)
{
	struct client c;
	static struct answer answers[OBL_OPERATIONS_MAX + 1];
	struct obl_change change = { .key = "counter", .value = "x" };
	struct obl_txn txn = { .n_changes = 1, .changes = &change };
	unsigned refused = 0;

	begin_with(&c);
	for (unsigned i = 0; i <= OBL_OPERATIONS_MAX; i++)
		client_start(&c, &txn, &answers[i]);
	for (unsigned i = 0; i <= OBL_OPERATIONS_MAX; i++) {
		RUN_UNTIL(answers[i].done);
		refused += answers[i].err == OB_ERR_LIMIT;
		/* A slow etcd does not take them all in time. */
		CHECK(answers[i].err == OB_ERR_LIMIT || answers[i].succeeded ||
			answers[i].err == OB_ERR_CONNECT || obl_txn_unknown(answers[i].err));
	}
	CHECK_INT(refused, 1);
	CHECK_INT(answers[OBL_OPERATIONS_MAX].err, OB_ERR_LIMIT);
	end_with(&c);
}

TEST(close_ends_operations)
{
	struct client c;
	struct answer answers[3];
	struct obl_change change = { .key = "a", .value = "1" };
	struct obl_txn txn = { .n_changes = 1, .changes = &change };

	begin_with(&c);
	for (unsigned i = 0; i < 3; i++)
		client_start(&c, &txn, &answers[i]);
	client_close(&c);
	for (unsigned i = 0; i < 3; i++)
		CHECK(answers[i].done && answers[i].err == OB_ERR_CLOSED);
	end();
}

TEST(close_at_once)
{
	struct client c;

	begin();
	client_open(&c, &options);
	end_with(&c);
}

TEST(opened_again)
{
	struct client c, keep;

	begin_with(&c);
	if (strcmp(c.registry->ops->name, "memory") == 0) {
		client_open(&keep, &options); /* else the registry would end with its last handle */
		client_wait_usable(&keep);
	}
	client_put(&c, "servers/a", "1");
	client_put(&c, "servers/b", "2");
	client_put(&c, "servers/a", NULL);
	client_close(&c);
	client_open(&c, &options);
	client_wait_usable(&c);
	CHECK_INT(c.mirror.n, 1);
	CHECK_STR(client_value(&c, "servers/b"), "2");
	CHECK(client_put(&c, "servers/c", "3") > client_revision(&c, "servers/b"));
	client_close(&c);
	if (strcmp(options.url, "memory:test") == 0)
		client_close(&keep);
	end();
}

TEST(leased_keys_end_with_the_handle)
{
	struct client a, b;
	struct answer answer;
	struct obl_change changes[2] = { { .key = "alive/s/a", .value = "1", .leased = true },
		{ .key = "servers/s", .value = "1" } };
	struct obl_txn txn = { .n_changes = 2, .changes = changes };

	begin_with(&a);
	client_txn(&a, &txn, &answer);
	CHECK(answer.succeeded);
	RUN_UNTIL(a.mirror.n == 2);
	if (several) {
		client_open(&b, &options);
		client_wait_usable(&b);
		CHECK_INT(b.mirror.n, 2);
		client_close(&a);
		RUN_UNTIL(b.mirror.n == 1);
	} else {
		client_close(&a);
		client_open(&b, &options);
		client_wait_usable(&b);
	}
	CHECK_INT(b.mirror.n, 1);
	CHECK(client_revision(&b, "servers/s"));
	end_with(&b);
}

TEST(two_handles)
{
	struct client a, b;
	struct answer one, two;
	struct obl_compare compare = { .key = "ledger/s" };
	struct obl_change change = { .key = "ledger/s", .value = "1" };
	struct obl_txn txn = { 1, 1, &compare, &change };

	begin_with(&a);
	if (!several) {
		client_close(&a);
		end();
		TEST_SKIP("one handle only");
	}
	client_open(&b, &options);
	client_wait_usable(&b);
	client_start(&a, &txn, &one);
	client_start(&b, &txn, &two);
	RUN_UNTIL(one.done && two.done);
	CHECK(one.err == OB_ERR_NONE && two.err == OB_ERR_NONE);
	CHECK(one.succeeded != two.succeeded);
	RUN_UNTIL(a.mirror.n == 1 && b.mirror.n == 1);
	answer_fini(&one);
	answer_fini(&two);
	client_close(&b);
	end_with(&a);
}

/* Exactly one handle leads; another one does when it is closed. */
TEST(leader)
{
	struct client a, b;
	struct obl_registry_options second;

	begin_with(&a);
	RUN_UNTIL(a.registry->ops->leads(a.registry));
	if (!several || strcmp(a.registry->ops->name, "memory") == 0) {
		end_with(&a);
		return;
	}
	second = options;
	second.balancer = "b2";
	client_open(&b, &second);
	client_wait_usable(&b);
	CHECK(!b.registry->ops->leads(b.registry));
	CHECK_INT(b.mirror.n, 0); /* the election's key is not shown */
	client_close(&a);
	RUN_UNTIL(b.registry->ops->leads(b.registry));
	end_with(&b);
}

int main(int argc, char **argv)
{
	test_fds_allowed = 2; /* libuv keeps a pipe for signals */
	return test_main(argc, argv);
}
