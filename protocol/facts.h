/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * What is known of one device beyond its name and memory: the numbers that NVML programs ask for.
 * Each is optional: a fact that the server does not know is left out of the message, and the
 * client answers "not supported". Part of the answer about the load (load.h). Plain data.
 */
#ifndef OBP_FACTS_H
#define OBP_FACTS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * X(name, key in the message, largest valid value). Bytes; MHz; milliwatts; degrees Celsius; per
 * cent; modes and masks have NVML's values. PEERS: a bit for each device of the server, by number, whose
 * memory this one can access; PEER_ATOMICS: with native atomics.
 */
/* clang-format off */
#define OBP_FACTS(X)                                                                             \
	X(MEMORY_TOTAL, "mem_total", UINT64_MAX) X(MEMORY_RESERVED, "mem_reserved", UINT64_MAX)   \
	X(MEMORY_USED, "mem_used", UINT64_MAX) X(BAR1_TOTAL, "bar1_total", UINT64_MAX)            \
	X(BAR1_USED, "bar1_used", UINT64_MAX)                                                     \
	X(USE_GPU, "use_gpu", 100) X(USE_MEMORY, "use_memory", 100)                               \
	X(USE_ENCODER, "use_encoder", 100) X(USE_DECODER, "use_decoder", 100)                     \
	X(TEMPERATURE, "temperature", 1000) X(TEMPERATURE_SHUTDOWN, "t_shutdown", 1000)           \
	X(TEMPERATURE_SLOWDOWN, "t_slowdown", 1000) X(TEMPERATURE_MEMORY_MAX, "t_memory", 1000)   \
	X(TEMPERATURE_GPU_MAX, "t_gpu", 1000) X(FAN, "fan", 1000)                                 \
	X(POWER, "power", UINT32_MAX) X(POWER_LIMIT, "p_limit", UINT32_MAX)                       \
	X(POWER_ENFORCED, "p_enforced", UINT32_MAX) X(POWER_DEFAULT, "p_default", UINT32_MAX)     \
	X(POWER_MIN, "p_min", UINT32_MAX) X(POWER_MAX, "p_max", UINT32_MAX)                       \
	X(ENERGY, "energy", UINT64_MAX)                                                           \
	X(CLOCK_GRAPHICS, "c_graphics", UINT32_MAX) X(CLOCK_SM, "c_sm", UINT32_MAX)               \
	X(CLOCK_MEMORY, "c_memory", UINT32_MAX) X(CLOCK_VIDEO, "c_video", UINT32_MAX)             \
	X(CLOCK_MAX_GRAPHICS, "m_graphics", UINT32_MAX) X(CLOCK_MAX_SM, "m_sm", UINT32_MAX)       \
	X(CLOCK_MAX_MEMORY, "m_memory", UINT32_MAX) X(CLOCK_MAX_VIDEO, "m_video", UINT32_MAX)     \
	X(CLOCK_APP_GRAPHICS, "a_graphics", UINT32_MAX)                                           \
	X(CLOCK_APP_MEMORY, "a_memory", UINT32_MAX) X(CLOCK_REASONS, "c_reasons", UINT64_MAX)     \
	X(PERFORMANCE, "pstate", 32) X(PCI_DOMAIN, "pci_domain", UINT32_MAX)                      \
	X(PCI_BUS, "pci_bus", 255) X(PCI_DEVICE, "pci_device", 255)                               \
	X(PCI_ID, "pci_id", UINT32_MAX) X(PCI_SUBSYSTEM, "pci_subsystem", UINT32_MAX)             \
	X(PCIE_GENERATION, "pcie_gen", 255) X(PCIE_WIDTH, "pcie_width", 255)                      \
	X(PCIE_MAX_GENERATION, "pcie_max_gen", 255) X(PCIE_MAX_WIDTH, "pcie_max_width", 255)      \
	X(PCIE_REPLAYS, "pcie_replays", UINT32_MAX)                                               \
	X(ECC, "ecc", 1) X(ECC_PENDING, "ecc_pending", 1)                                         \
	X(ECC_CORRECTED, "ecc_corrected", UINT64_MAX)                                             \
	X(ECC_UNCORRECTED, "ecc_uncorrected", UINT64_MAX)                                         \
	X(PERSISTENCE, "persistence", 1) X(COMPUTE_MODE, "compute_mode", 3)                       \
	X(MIG, "mig", 1) X(MIG_PENDING, "mig_pending", 1) X(BUS_WIDTH, "bus_width", UINT32_MAX)   \
	X(CORES, "cores", UINT32_MAX) X(ARCHITECTURE, "architecture", UINT32_MAX)                 \
	X(BRAND, "brand", 255) X(NUMBER, "number", UINT32_MAX)                                    \
	X(PEERS, "peers", UINT16_MAX) X(PEER_ATOMICS, "peer_atomics", UINT16_MAX)
/* clang-format on */

#define OBP_FACT_ENUM(name, key, max) OBP_FACT_##name,
enum obp_fact { OBP_FACTS(OBP_FACT_ENUM) OBP_FACT_COUNT };
#undef OBP_FACT_ENUM

struct obp_facts {
	uint64_t known; /* a bit for each enum obp_fact */
	uint64_t value[OBP_FACT_COUNT];
};

_Static_assert(OBP_FACT_COUNT <= 64, "known has a bit for each");

static inline void obp_fact_set(struct obp_facts *facts, enum obp_fact fact, uint64_t value)
{
	facts->known |= UINT64_C(1) << fact;
	facts->value[fact] = value;
}

/* False: not known, and *ret_value is unchanged. */
static inline bool obp_fact_get(
	const struct obp_facts *facts, enum obp_fact fact, uint64_t *ret_value)
{
	if (!(facts->known >> fact & 1))
		return false;
	*ret_value = facts->value[fact];
	return true;
}

/* Takes over what `from` knows; its values replace those of `to`. */
void obp_facts_merge(struct obp_facts *to, const struct obp_facts *from);
/* Drops values above their maximum: those of a sender that is not trusted. */
void obp_facts_check(struct obp_facts *facts);
/* The key of a fact in the message; a fact's largest valid value. */
const char *obp_fact_name(enum obp_fact fact);
uint64_t obp_fact_max(enum obp_fact fact);

#endif
