/* What a GPU reads: calls that answer one number from a table, calls that answer several, and field values. */
#include "fakenvml.h"

static nvml read_64(device handle, enum key call, enum key key, uint64_t *out)
{
    struct view view;
    nvml result = enter(handle, call, &view);
    if (result != NVML_OK)
        return result;
    *out = (uint64_t)value(&view, key);
    return leave(NVML_OK);
}

static nvml read_32(device handle, enum key call, enum key key, uint32_t *out)
{
    uint64_t wide = 0;
    nvml result = read_64(handle, call, key, &wide);
    if (result == NVML_OK)
        *out = (uint32_t)wide;
    return result;
}

#define NUMBER(function, key) \
    API nvml function(device handle, uint32_t *out) { return read_32(handle, KEY_##key, KEY_##key, out); }
NUMBER(nvmlDeviceGetBrand, brand)
NUMBER(nvmlDeviceGetArchitecture, architecture)
NUMBER(nvmlDeviceGetPowerUsage, power_usage)
NUMBER(nvmlDeviceGetPowerManagementMode, power_management_mode)
NUMBER(nvmlDeviceGetPowerManagementLimit, power_management_limit)
NUMBER(nvmlDeviceGetPowerManagementDefaultLimit, power_management_default_limit)
NUMBER(nvmlDeviceGetEnforcedPowerLimit, enforced_power_limit)
NUMBER(nvmlDeviceGetNumFans, num_fans)
NUMBER(nvmlDeviceGetFanSpeed, fan_speed)
NUMBER(nvmlDeviceGetPerformanceState, performance_state)
NUMBER(nvmlDeviceGetPersistenceMode, persistence_mode)
NUMBER(nvmlDeviceGetComputeMode, compute_mode)
NUMBER(nvmlDeviceGetDisplayActive, display_active)
NUMBER(nvmlDeviceGetDisplayMode, display_mode)
NUMBER(nvmlDeviceGetAccountingMode, accounting_mode)
NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, pcie_link_generation)
NUMBER(nvmlDeviceGetCurrPcieLinkWidth, pcie_link_width)
NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, max_pcie_link_generation)
NUMBER(nvmlDeviceGetGpuMaxPcieLinkGeneration, gpu_max_pcie_link_generation)
NUMBER(nvmlDeviceGetMaxPcieLinkWidth, max_pcie_link_width)
NUMBER(nvmlDeviceGetPcieReplayCounter, pcie_replay_counter)
NUMBER(nvmlDeviceGetRetiredPagesPendingStatus, retired_pages_pending)

#define WIDE(function, call, key) \
    API nvml function(device handle, uint64_t *out) { return read_64(handle, KEY_##call, KEY_##key, out); }
WIDE(nvmlDeviceGetTotalEnergyConsumption, total_energy_consumption, total_energy_consumption)
WIDE(nvmlDeviceGetCurrentClocksEventReasons, clocks_event_reasons, clocks_event_reasons)
WIDE(nvmlDeviceGetCurrentClocksThrottleReasons, clocks_throttle_reasons, clocks_event_reasons)
WIDE(nvmlDeviceGetSupportedClocksEventReasons, supported_clocks_event_reasons, supported_clocks_event_reasons)
WIDE(nvmlDeviceGetSupportedClocksThrottleReasons, supported_clocks_throttle_reasons, supported_clocks_event_reasons)
WIDE(nvmlDeviceGetSupportedEventTypes, supported_event_types, supported_event_types)

/* The keys of such a call stand in the table in the order of NVML's numbers for its argument. */
#define CHOICE(function, first, last, if_unknown) \
    API nvml function(device handle, unsigned which, uint32_t *out) \
    { \
        enum key key = KEY_##first + which; \
        return which > KEY_##last - KEY_##first ? if_unknown : read_32(handle, key, key, out); \
    }
CHOICE(nvmlDeviceGetClockInfo, clock_graphics, clock_video, NVML_INVALID_ARGUMENT)
CHOICE(nvmlDeviceGetMaxClockInfo, max_clock_graphics, max_clock_video, NVML_INVALID_ARGUMENT)
CHOICE(nvmlDeviceGetApplicationsClock, applications_clock_graphics, applications_clock_video, NVML_INVALID_ARGUMENT)
CHOICE(nvmlDeviceGetTemperature, temperature, temperature, NVML_INVALID_ARGUMENT)
CHOICE(nvmlDeviceGetTemperatureThreshold, temperature_threshold_shutdown, temperature_threshold_gpu_max,
       NVML_NOT_SUPPORTED)
CHOICE(nvmlDeviceGetPcieThroughput, pcie_throughput_tx, pcie_throughput_rx, NVML_INVALID_ARGUMENT)

#define SAMPLING_PERIOD_US 167000
#define ENGINE(function, key) \
    API nvml function(device handle, uint32_t *out, uint32_t *period_us) \
    { \
        *period_us = SAMPLING_PERIOD_US; \
        return read_32(handle, KEY_##key, KEY_##key, out); \
    }
ENGINE(nvmlDeviceGetEncoderUtilization, encoder_utilization)
ENGINE(nvmlDeviceGetDecoderUtilization, decoder_utilization)
ENGINE(nvmlDeviceGetJpgUtilization, jpg_utilization)
ENGINE(nvmlDeviceGetOfaUtilization, ofa_utilization)

/* A call that answers two numbers, each by a key of its own. */
#define PAIR(function, call, type, first, second) \
    API nvml function(device handle, type *a, type *b) \
    { \
        struct view view; \
        nvml result = enter(handle, KEY_##call, &view); \
        if (result != NVML_OK) \
            return result; \
        *a = (type)value(&view, KEY_##first); \
        *b = (type)value(&view, KEY_##second); \
        return leave(NVML_OK); \
    }
PAIR(nvmlDeviceGetCudaComputeCapability, cuda_compute_capability, int, cuda_major, cuda_minor)
PAIR(nvmlDeviceGetEccMode, ecc_mode, uint32_t, ecc_current, ecc_pending)
PAIR(nvmlDeviceGetPowerManagementLimitConstraints, power_management_limit_constraints, uint32_t, power_limit_min,
     power_limit_max)

API nvml nvmlDeviceGetFanSpeed_v2(device handle, unsigned fan, uint32_t *out)
{
    uint32_t fans = 0;
    nvml result = read_32(handle, KEY_fan_speed, KEY_num_fans, &fans);
    if (result == NVML_OK && fan >= fans)
        return NVML_INVALID_ARGUMENT;
    return result == NVML_OK ? nvmlDeviceGetFanSpeed(handle, out) : result;
}

struct temperature { uint32_t version, sensor; int32_t celsius; };
struct margin { uint32_t version; int32_t celsius; };
struct utilization { uint32_t gpu, memory; };
struct memory { uint64_t total, free, used; };
struct memory_v2 { uint32_t version; uint64_t total, reserved, free, used; };
struct violation { uint64_t reference_us, violation_ns; };

#define VERSIONED(type, version) (sizeof(type) | (uint32_t)(version) << 24)

API nvml nvmlDeviceGetTemperatureV(device handle, struct temperature *out)
{
    if (out->version != VERSIONED(*out, 1))
        return NVML_ARGUMENT_VERSION_MISMATCH;
    if (out->sensor)
        return NVML_INVALID_ARGUMENT;
    return read_32(handle, KEY_temperature_v, KEY_temperature, (uint32_t *)&out->celsius);
}

API nvml nvmlDeviceGetMarginTemperature(device handle, struct margin *out)
{
    if (out->version != VERSIONED(*out, 1))
        return NVML_ARGUMENT_VERSION_MISMATCH;
    return read_32(handle, KEY_margin_temperature, KEY_margin_temperature, (uint32_t *)&out->celsius);
}

/* As on a real GPU, there is no utilization of a GPU that is split. */
API nvml nvmlDeviceGetUtilizationRates(device handle, struct utilization *out)
{
    struct view view;
    nvml result = enter(handle, KEY_utilization_rates, &view);
    if (result != NVML_OK)
        return result;
    if (view.gpu->value[KEY_mig])
        return leave(NVML_NOT_SUPPORTED);
    out->gpu = (uint32_t)value(&view, KEY_utilization_gpu);
    out->memory = (uint32_t)value(&view, KEY_utilization_memory);
    return leave(NVML_OK);
}

/* MIG devices share evenly, but for 1 MiB times their number, by which they can be told apart. */
static struct memory_v2 memory_of(const struct view *view)
{
    uint64_t parts = view->mig < 0 ? 1 : (uint64_t)view->gpu->value[KEY_mig];
    struct memory_v2 memory = {.version = VERSIONED(memory, 2)};
    memory.total = (uint64_t)value(view, KEY_memory_total) / parts;
    memory.reserved = (uint64_t)value(view, KEY_memory_reserved) / parts;
    memory.used = (uint64_t)value(view, KEY_memory_used) / parts + (view->mig > 0 ? (uint64_t)view->mig << 20 : 0);
    memory.free = memory.total - memory.reserved - memory.used;
    return memory;
}

API nvml nvmlDeviceGetMemoryInfo_v2(device handle, struct memory_v2 *out)
{
    struct view view;
    if (out->version != VERSIONED(*out, 2))
        return NVML_ARGUMENT_VERSION_MISMATCH;
    nvml result = enter(handle, KEY_memory_info_v2, &view);
    if (result != NVML_OK)
        return result;
    *out = memory_of(&view);
    return leave(NVML_OK);
}

/* The first version counts what the driver reserves as used. */
API nvml nvmlDeviceGetMemoryInfo(device handle, struct memory *out)
{
    struct view view;
    nvml result = enter(handle, KEY_memory_info, &view);
    if (result != NVML_OK)
        return result;
    struct memory_v2 memory = memory_of(&view);
    *out = (struct memory){memory.total, memory.free, memory.used + memory.reserved};
    return leave(NVML_OK);
}

API nvml nvmlDeviceGetBAR1MemoryInfo(device handle, struct memory *out)
{
    struct view view;
    nvml result = enter(handle, KEY_bar1_memory_info, &view);
    if (result != NVML_OK)
        return result;
    uint64_t total = (uint64_t)value(&view, KEY_bar1_total), used = (uint64_t)value(&view, KEY_bar1_used);
    *out = (struct memory){total, total - used, used};
    return leave(NVML_OK);
}

API nvml nvmlDeviceGetEncoderStats(device handle, uint32_t *sessions, uint32_t *fps, uint32_t *latency_us)
{
    struct view view;
    nvml result = enter(handle, KEY_encoder_stats, &view);
    if (result != NVML_OK)
        return result;
    *sessions = (uint32_t)value(&view, KEY_encoder_sessions);
    *fps = (uint32_t)value(&view, KEY_encoder_fps);
    *latency_us = (uint32_t)value(&view, KEY_encoder_latency);
    return leave(NVML_OK);
}

API nvml nvmlDeviceGetViolationStatus(device handle, unsigned policy, struct violation *out)
{
    enum { LOW_POLICIES = 6, FIRST_TOTAL = 10, LAST_TOTAL = 11 };
    if (policy >= LOW_POLICIES && (policy < FIRST_TOTAL || policy > LAST_TOTAL))
        return NVML_INVALID_ARGUMENT;
    unsigned place = policy < LOW_POLICIES ? policy : policy - FIRST_TOTAL + LOW_POLICIES;
    out->reference_us = (uint64_t)unix_us();
    return read_64(handle, KEY_violation_power + place, KEY_violation_power + place, &out->violation_ns);
}

static uint64_t ecc_errors(const struct view *view, enum key first, unsigned type, unsigned counter)
{
    return (uint64_t)value(view, first + type + 2 * counter);
}

API nvml nvmlDeviceGetTotalEccErrors(device handle, unsigned type, unsigned counter, uint64_t *out)
{
    struct view view;
    if (type > 1 || counter > 1)
        return NVML_INVALID_ARGUMENT;
    nvml result = enter(handle, KEY_total_ecc_errors, &view);
    if (result != NVML_OK)
        return result;
    *out = ecc_errors(&view, KEY_ecc_dram_corrected_volatile, type, counter)
         + ecc_errors(&view, KEY_ecc_sram_corrected_volatile, type, counter);
    return leave(NVML_OK);
}

API nvml nvmlDeviceGetMemoryErrorCounter(device handle, unsigned type, unsigned counter, unsigned place, uint64_t *out)
{
    enum { DRAM = 2, SRAM = 7, PLACES = 8 };
    struct view view;
    if (type > 1 || counter > 1 || place >= PLACES)
        return NVML_INVALID_ARGUMENT;
    nvml result = enter(handle, KEY_memory_error_counter, &view);
    if (result != NVML_OK)
        return result;
    if (place != DRAM && place != SRAM)
        return leave(NVML_NOT_SUPPORTED);
    enum key first = place == DRAM ? KEY_ecc_dram_corrected_volatile : KEY_ecc_sram_corrected_volatile;
    *out = ecc_errors(&view, first, type, counter);
    return leave(NVML_OK);
}

API nvml nvmlDeviceGetRemappedRows(device handle, uint32_t *correctable, uint32_t *uncorrectable, uint32_t *pending,
                                   uint32_t *failure)
{
    struct view view;
    nvml result = enter(handle, KEY_remapped_rows, &view);
    if (result != NVML_OK)
        return result;
    *correctable = (uint32_t)value(&view, KEY_remapped_correctable);
    *uncorrectable = (uint32_t)value(&view, KEY_remapped_uncorrectable);
    *pending = (uint32_t)value(&view, KEY_remapped_pending);
    *failure = (uint32_t)value(&view, KEY_remapped_failure);
    return leave(NVML_OK);
}

API nvml nvmlDeviceGetRetiredPages_v2(device handle, unsigned cause, unsigned *count, uint64_t *pages, uint64_t *times)
{
    uint64_t retired = 0;
    if (cause > 1)
        return NVML_INVALID_ARGUMENT;
    enum key key = KEY_retired_pages_sbe + cause;
    nvml result = read_64(handle, key, key, &retired);
    if (result != NVML_OK)
        return result;
    unsigned room = pages ? *count : 0;
    *count = (unsigned)retired;
    for (unsigned i = 0; i < retired && i < room; i++) {
        pages[i] = 0x1000 * (i + 1);
        if (times)
            times[i] = (uint64_t)unix_us();
    }
    return retired > room ? NVML_INSUFFICIENT_SIZE : NVML_OK;
}

API nvml nvmlDeviceGetRetiredPages(device handle, unsigned cause, unsigned *count, uint64_t *pages)
{
    return nvmlDeviceGetRetiredPages_v2(handle, cause, count, pages, NULL);
}
