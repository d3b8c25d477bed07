/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/dashboard/exposition.h"

#include <stdio.h>

static const char *const states[OBL_SEEN_STATES] = { "ready", "cordoned", "draining", "unwell",
	"joining", "silent", "lost" };
static const char *const results[OBL_PLACED_RESULTS] = { "granted", "queued", "refused", "failed" };
static const char *const reasons[OBL_BECAUSE_REASONS] = { "none", "capacity", "busy", "denied",
	"invalid", "registry", "internal" };

const char *obl_seen_state_name(enum obl_seen_state state)
{
	return state < OBL_SEEN_STATES ? states[state] : "?";
}

/* ---- servers ---- */

struct servers {
	struct ob_buf *out;
	uint32_t count[OBL_SEEN_STATES];
	unsigned pass;
};

static void server_seen(void *to, const struct obl_seen_server *server)
{
	struct servers *servers = to;
	char name[2 * OBP_POOL_NAME_MAX], labels[3 * OBP_POOL_NAME_MAX];

	snprintf(labels, sizeof labels, "server=\"%s\"",
		ob_metrics_label_text(server->name, name, sizeof name));
	if (servers->pass == 0 && server->state < OBL_SEEN_STATES)
		servers->count[server->state]++;
	else if (servers->pass == 1 && server->beat_ns != UINT64_MAX)
		ob_metrics_sample(servers->out, "pool_server_heartbeat_age_seconds", labels,
			(double)server->beat_ns / 1e9);
	else if (servers->pass == 2)
		ob_metrics_count(servers->out, "pool_server_sessions", labels, server->sessions);
	else if (servers->pass == 3)
		ob_metrics_count(
			servers->out, "pool_server_up", labels, server->state < OBL_SEEN_JOINING);
}

static void servers_write(const struct obl_source *source, struct ob_buf *out)
{
	struct servers servers = { .out = out };
	char labels[32];

	source->servers(source->user, server_seen, &servers);
	ob_metrics_head(out, "pool_servers", "gauge", "Registered servers by state.");
	for (unsigned s = 0; s < OBL_SEEN_STATES; s++) {
		snprintf(labels, sizeof labels, "state=\"%s\"", states[s]);
		ob_metrics_count(out, "pool_servers", labels, servers.count[s]);
	}
	servers.pass = 1;
	ob_metrics_head(out, "pool_server_heartbeat_age_seconds", "gauge",
		"Time since the last heartbeat at this balancer.");
	source->servers(source->user, server_seen, &servers);
	servers.pass = 2;
	ob_metrics_head(out, "pool_server_sessions", "gauge", "Sessions that the server reports.");
	source->servers(source->user, server_seen, &servers);
	servers.pass = 3;
	ob_metrics_head(out, "pool_server_up", "gauge", "1 if its heartbeats arrive.");
	source->servers(source->user, server_seen, &servers);
}

/* ---- GPUs ---- */

enum { ALWAYS = 31 }; /* in place of an enum obl_reading */

static const struct series {
	const char *name, *help;
	unsigned reading;
} series[] = {
	{ "pool_gpu_memory_bytes", "Memory that sessions may use.", ALWAYS },
	{ "pool_gpu_memory_reserved_bytes", "Memory in reservations.", ALWAYS },
	{ "pool_gpu_reservations", "Reservations on the device.", ALWAYS },
	{ "pool_gpu_memory_used_bytes", "Memory in use, as reported.", OBL_READ_USED },
	{ "pool_gpu_utilization_ratio", "Part of its time in use, as reported.", OBL_READ_BUSY },
	{ "pool_gpu_temperature_celsius", "Temperature, as reported.", OBL_READ_CELSIUS },
	{ "pool_gpu_power_watts", "Power, as reported.", OBL_READ_POWER },
	{ "pool_gpu_faulty", "1 if it gets no new sessions because of a fault.", ALWAYS },
};

struct gpus {
	struct ob_buf *out;
	unsigned pass;
};

static double reading_of(const struct obl_seen_gpu *gpu, unsigned pass)
{
	switch (pass) {
	case 0:
		return (double)gpu->total;
	case 1:
		return (double)gpu->reserved;
	case 2:
		return gpu->sharers;
	case 3:
		return (double)gpu->used;
	case 4:
		return gpu->busy / 1000.0;
	case 5:
		return gpu->celsius;
	case 6:
		return gpu->milliwatts / 1000.0;
	default:
		return gpu->faulty;
	}
}

static void gpu_seen(void *to, const struct obl_seen_gpu *gpu)
{
	struct gpus *gpus = to;
	const struct series *s = &series[gpus->pass];
	char labels[OB_METRICS_GPU_MAX];

	if (s->reading != ALWAYS && !(gpu->known >> s->reading & 1))
		return;
	ob_metrics_gpu(gpu->index, gpu->uuid, gpu->model, gpu->server, labels);
	ob_metrics_sample(gpus->out, s->name, labels, reading_of(gpu, gpus->pass));
}

static void gpus_write(const struct obl_source *source, struct ob_buf *out)
{
	struct gpus gpus = { .out = out };

	for (; gpus.pass < sizeof series / sizeof *series; gpus.pass++) {
		ob_metrics_head(out, series[gpus.pass].name, "gauge", series[gpus.pass].help);
		source->gpus(source->user, gpu_seen, &gpus);
	}
}

/* ---- tenants and the queue ---- */

struct tenants {
	struct ob_buf *out;
	unsigned pass;
};

static void sessions_put(struct ob_buf *out, const char *tenant, const char *state, uint32_t count)
{
	char labels[4 * OBP_POOL_NAME_MAX];

	snprintf(labels, sizeof labels, "tenant=\"%s\",state=\"%s\"", tenant, state);
	ob_metrics_count(out, "pool_sessions", labels, count);
}

static void tenant_seen(void *to, const struct obl_seen_tenant *tenant)
{
	struct tenants *tenants = to;
	char name[2 * OBP_POOL_NAME_MAX], labels[3 * OBP_POOL_NAME_MAX];

	ob_metrics_label_text(tenant->name, name, sizeof name);
	snprintf(labels, sizeof labels, "tenant=\"%s\"", name);
	switch (tenants->pass) {
	case 0:
		sessions_put(tenants->out, name, "running", tenant->claimed);
		sessions_put(
			tenants->out, name, "starting", tenant->reservations - tenant->claimed);
		break;
	case 1:
		ob_metrics_count(tenants->out, "pool_tenant_gpus", labels, tenant->gpus);
		break;
	case 2:
		ob_metrics_count(
			tenants->out, "pool_tenant_memory_reserved_bytes", labels, tenant->memory);
		break;
	case 3:
		ob_metrics_count(tenants->out, "pool_queue_length", labels, tenant->waiting);
		break;
	default:
		ob_metrics_sample(tenants->out, "pool_queue_oldest_seconds", labels,
			(double)tenant->waiting_ns / 1e9);
	}
}

static void tenants_write(const struct obl_source *source, struct ob_buf *out)
{
	static const char *const heads[][2] = {
		{ "pool_sessions", "Reservations by tenant and state." },
		{ "pool_tenant_gpus", "GPUs reserved by the tenant." },
		{ "pool_tenant_memory_reserved_bytes", "Memory reserved by the tenant." },
		{ "pool_queue_length", "Requests that wait." },
		{ "pool_queue_oldest_seconds", "How long the oldest request has waited." },
	};
	struct tenants tenants = { .out = out };

	for (; tenants.pass < 5; tenants.pass++) {
		ob_metrics_head(out, heads[tenants.pass][0], "gauge", heads[tenants.pass][1]);
		source->tenants(source->user, tenant_seen, &tenants);
	}
}

/* ---- the balancer ---- */

/* Combinations that have not occurred are left out, but each result is there from the start. */
static void placed_write(const struct obl_counts *counts, struct ob_buf *out)
{
	char labels[64];

	ob_metrics_head(out, "pool_placement_total", "counter", "Requests by result and reason.");
	for (unsigned r = 0; r < OBL_PLACED_RESULTS; r++) {
		for (unsigned w = 0; w < OBL_BECAUSE_REASONS; w++) {
			if (w != OBL_BECAUSE_NONE && !counts->placed[r][w])
				continue;
			snprintf(labels, sizeof labels, "result=\"%s\",reason=\"%s\"", results[r],
				reasons[w]);
			ob_metrics_count(out, "pool_placement_total", labels, counts->placed[r][w]);
		}
	}
	ob_metrics_head(out, "pool_placement_duration_seconds", "histogram",
		"From a request to its answer, without the time in the queue.");
	ob_metrics_histogram(out, "pool_placement_duration_seconds", "", &counts->placing);
	ob_metrics_head(out, "pool_queue_wait_seconds", "histogram",
		"Time in the queue of requests that were placed from it.");
	ob_metrics_histogram(out, "pool_queue_wait_seconds", "", &counts->waiting);
	ob_metrics_counter(out, "pool_cas_conflicts_total",
		"Transactions repeated because another balancer had changed a ledger.",
		counts->conflicts);
	ob_metrics_head(out, "pool_moves_total", "counter",
		"Places offered to restartable programs, and programs that run there now.");
	ob_metrics_count(out, "pool_moves_total", "state=\"offered\"", counts->moves_offered);
	ob_metrics_count(out, "pool_moves_total", "state=\"made\"", counts->moves);
	ob_metrics_head(out, "pool_imbalance_ratio", "gauge",
		"Busiest less idlest device at the last round of rebalancing; 0 where none is "
		"made.");
	ob_metrics_sample(out, "pool_imbalance_ratio", "", counts->imbalance / 1000.0);
}

void obl_exposition_write(const struct obl_source *source, struct ob_buf *out)
{
	struct obl_seen seen = { 0 };
	char name[2 * OBP_POOL_NAME_MAX], version[64], labels[4 * OBP_POOL_NAME_MAX];

	source->refresh(source->user);
	source->seen(source->user, &seen);
	snprintf(labels, sizeof labels, "balancer=\"%s\",version=\"%s\"",
		ob_metrics_label_text(seen.balancer ? seen.balancer : "", name, sizeof name),
		ob_metrics_label_text(seen.version ? seen.version : "", version, sizeof version));
	ob_metrics_head(out, "pool_balancer_info", "gauge", "Always 1.");
	ob_metrics_count(out, "pool_balancer_info", labels, 1);
	ob_metrics_gauge(out, "pool_registry_usable",
		"1 if the registry answers with a quorum; else placements are refused.",
		seen.usable);
	ob_metrics_gauge(out, "pool_lease_state",
		"1 if the balancer's lease lives, which holds as long as the registry is usable.",
		seen.usable);
	ob_metrics_gauge(out, "pool_leader", "1 if this balancer leads.", seen.leader);
	if (seen.counts)
		placed_write(seen.counts, out);
	servers_write(source, out);
	gpus_write(source, out);
	tenants_write(source, out);
}
