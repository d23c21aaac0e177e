/* Field values, and NVLink, whose counters are mostly read that way. */
#include "fakenvml.h"

enum type { UNSIGNED = 1, WIDE = 3 };
enum scope { WHOLE, LINK, ECC_SUM, STATE };

struct field { unsigned id; enum key key; enum type type; enum scope scope; };
struct field_value {
    uint32_t id, scope;
    int64_t unix_us, latency_us;
    uint32_t type, result;
    union { uint32_t narrow; uint64_t wide; } value;
};

static const struct field field_table[] = {
    {1, KEY_ecc_current, UNSIGNED, WHOLE},
    {2, KEY_ecc_pending, UNSIGNED, WHOLE},
    {3, KEY_ecc_dram_corrected_volatile, WIDE, ECC_SUM},
    {4, KEY_ecc_dram_uncorrected_volatile, WIDE, ECC_SUM},
    {5, KEY_ecc_dram_corrected_aggregate, WIDE, ECC_SUM},
    {6, KEY_ecc_dram_uncorrected_aggregate, WIDE, ECC_SUM},
    {29, KEY_retired_pages_sbe, UNSIGNED, WHOLE},
    {30, KEY_retired_pages_dbe, UNSIGNED, WHOLE},
    {31, KEY_retired_pages_pending, UNSIGNED, WHOLE},
    {38, KEY_nvlink_crc_flit_errors, WIDE, WHOLE},
    {45, KEY_nvlink_crc_data_errors, WIDE, WHOLE},
    {52, KEY_nvlink_replay_errors, WIDE, WHOLE},
    {59, KEY_nvlink_recovery_errors, WIDE, WHOLE},
    {74, KEY_violation_power, WIDE, WHOLE},
    {75, KEY_violation_thermal, WIDE, WHOLE},
    {76, KEY_violation_sync_boost, WIDE, WHOLE},
    {77, KEY_violation_board_limit, WIDE, WHOLE},
    {78, KEY_violation_low_utilization, WIDE, WHOLE},
    {79, KEY_violation_reliability, WIDE, WHOLE},
    {80, KEY_violation_total_app_clocks, WIDE, WHOLE},
    {81, KEY_violation_total_base_clocks, WIDE, WHOLE},
    {82, KEY_memory_temperature, UNSIGNED, WHOLE},
    {83, KEY_total_energy_consumption, WIDE, WHOLE},
    {90, KEY_nvlink_speed, UNSIGNED, WHOLE},
    {91, KEY_nvlink_links, UNSIGNED, WHOLE},
    {94, KEY_pcie_replay_counter, UNSIGNED, WHOLE},
    {138, KEY_nvlink_data_tx, WIDE, LINK},
    {139, KEY_nvlink_data_rx, WIDE, LINK},
    {140, KEY_nvlink_raw_tx, WIDE, LINK},
    {141, KEY_nvlink_raw_rx, WIDE, LINK},
    {142, KEY_remapped_correctable, UNSIGNED, WHOLE},
    {143, KEY_remapped_uncorrectable, UNSIGNED, WHOLE},
    {144, KEY_remapped_pending, UNSIGNED, WHOLE},
    {145, KEY_remapped_failure, UNSIGNED, WHOLE},
    {160, KEY_nvlink_ecc_data_errors, WIDE, WHOLE},
    {161, KEY_nvlink_replay_errors, WIDE, LINK},
    {162, KEY_nvlink_recovery_errors, WIDE, LINK},
    {163, KEY_nvlink_crc_flit_errors, WIDE, LINK},
    {164, KEY_nvlink_speed, UNSIGNED, WHOLE},
    {165, KEY_nvlink_state, UNSIGNED, STATE},
    {166, KEY_nvlink_version, UNSIGNED, WHOLE},
    {185, KEY_power_usage, UNSIGNED, WHOLE},
    {186, KEY_power_usage, UNSIGNED, WHOLE},
    {187, KEY_power_limit_min, UNSIGNED, WHOLE},
    {188, KEY_power_limit_max, UNSIGNED, WHOLE},
    {189, KEY_power_management_default_limit, UNSIGNED, WHOLE},
    {190, KEY_enforced_power_limit, UNSIGNED, WHOLE},
    {191, KEY_total_energy_consumption, WIDE, WHOLE},
    {192, KEY_power_management_limit, UNSIGNED, WHOLE},
    {230, KEY_gpu_recovery_action, UNSIGNED, WHOLE},
    {269, KEY_event_time_sw_thermal, WIDE, WHOLE},
    {270, KEY_event_time_hw_thermal, WIDE, WHOLE},
    {271, KEY_event_time_hw_power_brake, WIDE, WHOLE},
};
enum { FIELDS = sizeof field_table / sizeof *field_table, SHARES = 100 };
enum { SRAM_AFTER_DRAM = KEY_ecc_sram_corrected_volatile - KEY_ecc_dram_corrected_volatile };

static const struct field *field_numbered(unsigned id)
{
    for (int i = 0; i < FIELDS; i++)
        if (field_table[i].id == id)
            return &field_table[i];
    return NULL;
}

static uint64_t is_active(const struct view *view, unsigned link)
{
    return !(view->gpu->value[KEY_nvlink_down] >> link & 1);
}

/* Traffic is spread over the links, each carrying 1 % more than the one before; errors all come from link 0. */
static uint64_t share_of_link(const struct view *view, enum key key, unsigned link)
{
    unsigned links = (unsigned)view->gpu->value[KEY_nvlink_links];
    unsigned shares = links * SHARES + links * (links - 1) / 2;
    uint64_t total = (uint64_t)value(view, key);
    if (key >= KEY_nvlink_replay_errors)
        return link ? 0 : total;
    return (uint64_t)((double)total / shares * (SHARES + link));
}

static nvml field_amount(const struct view *view, const struct field *field, unsigned scope, uint64_t *out)
{
    int is_per_link = field->scope == LINK || field->scope == STATE;
    int is_one_link = is_per_link && !(field->scope == LINK && scope == NOT_AVAILABLE);
    if (is_one_link && scope >= view->gpu->value[KEY_nvlink_links])
        return NVML_INVALID_ARGUMENT;
    if (field->scope == STATE)
        *out = is_active(view, scope);
    else if (is_one_link)
        *out = share_of_link(view, field->key, scope);
    else
        *out = (uint64_t)value(view, field->key);
    if (field->scope == ECC_SUM)
        *out += (uint64_t)value(view, field->key + SRAM_AFTER_DRAM);
    return NVML_OK;
}

static void fill_field(const struct view *view, struct field_value *out)
{
    const struct field *field = field_numbered(out->id);
    uint64_t amount = 0;
    nvml result = field ? key_error(view, field->key) : NVML_NOT_SUPPORTED;
    if (result == NVML_OK)
        result = field_amount(view, field, out->scope, &amount);
    out->unix_us = unix_us();
    out->latency_us = 0;
    out->result = result;
    out->type = field ? field->type : UNSIGNED;
    out->value.wide = amount;
}

API nvml nvmlDeviceGetFieldValues(device handle, int count, struct field_value *fields)
{
    struct view view;
    nvml result = enter(handle, KEY_field_values, &view);
    if (result != NVML_OK)
        return result;
    for (int i = 0; i < count; i++)
        fill_field(&view, &fields[i]);
    return leave(NVML_OK);
}

/* Enters a call about one link; where that is NVML_OK the caller leaves. */
static nvml enter_link(device handle, enum key call, unsigned link, struct view *view)
{
    nvml result = enter(handle, call, view);
    if (result == NVML_OK && link >= view->gpu->value[KEY_nvlink_links])
        return leave(NVML_INVALID_ARGUMENT);
    return result;
}

API nvml nvmlDeviceGetNvLinkState(device handle, unsigned link, uint32_t *out)
{
    struct view view;
    nvml result = enter_link(handle, KEY_nvlink_state, link, &view);
    if (result != NVML_OK)
        return result;
    *out = (uint32_t)is_active(&view, link);
    return leave(NVML_OK);
}

API nvml nvmlDeviceGetNvLinkVersion(device handle, unsigned link, uint32_t *out)
{
    struct view view;
    nvml result = enter_link(handle, KEY_nvlink_version, link, &view);
    if (result != NVML_OK)
        return result;
    *out = (uint32_t)value(&view, KEY_nvlink_version);
    return leave(NVML_OK);
}

API nvml nvmlDeviceGetNvLinkErrorCounter(device handle, unsigned link, unsigned counter, uint64_t *out)
{
    struct view view;
    if (counter > KEY_nvlink_ecc_data_errors - KEY_nvlink_replay_errors)
        return NVML_INVALID_ARGUMENT;
    enum key key = KEY_nvlink_replay_errors + counter;
    nvml result = enter_link(handle, key, link, &view);
    if (result != NVML_OK)
        return result;
    *out = share_of_link(&view, key, link);
    return leave(NVML_OK);
}

API nvml nvmlDeviceGetNvLinkRemoteDeviceType(device handle, unsigned link, uint32_t *out)
{
    enum { SWITCH = 2 };
    struct view view;
    nvml result = enter_link(handle, KEY_nvlink_remote_pci_info, link, &view);
    if (result != NVML_OK)
        return result;
    *out = SWITCH;
    return leave(NVML_OK);
}
