/* Every key a scenario may name, with its default: KEY(name, flags, value of GPU 0, step per GPU, rate per second).
 * V: has a value.  C: names a call, so it can be unsupported, fail or be delayed.  M: the call takes MIG handles too.
 * K: a counter, which grows at its rate. Units are NVML's own (mW, mJ, bytes, KiB, ns). */
#define KEYS(KEY) \
    KEY(handle, C, 0, 0, 0) \
    KEY(index, C | M, 0, 0, 0) \
    KEY(minor_number, C, 0, 0, 0) \
    KEY(uuid, C | M, 0, 0, 0) \
    KEY(name, C | M, 0, 0, 0) \
    KEY(serial, C, 0, 0, 0) \
    KEY(vbios_version, C, 0, 0, 0) \
    KEY(pci_info, C, 0, 0, 0) \
    KEY(brand, V | C, 14, 0, 0) \
    KEY(architecture, V | C, 9, 0, 0) \
    KEY(cuda_compute_capability, C, 0, 0, 0) \
    KEY(cuda_major, V, 9, 0, 0) \
    KEY(cuda_minor, V, 0, 0, 0) \
    KEY(utilization_rates, C, 0, 0, 0) \
    KEY(utilization_gpu, V, 97, -1, 0) \
    KEY(utilization_memory, V, 70, -1, 0) \
    KEY(encoder_utilization, V | C, 2, 1, 0) \
    KEY(decoder_utilization, V | C, 4, 1, 0) \
    KEY(jpg_utilization, V | C, 1, 1, 0) \
    KEY(ofa_utilization, V | C, 0, 1, 0) \
    KEY(encoder_stats, C, 0, 0, 0) \
    KEY(encoder_sessions, V, 0, 1, 0) \
    KEY(encoder_fps, V, 0, 30, 0) \
    KEY(encoder_latency, V, 0, 100, 0) \
    KEY(memory_info, C | M, 0, 0, 0) \
    KEY(memory_info_v2, C | M, 0, 0, 0) \
    KEY(memory_total, V, 85520809984, 0, 0) \
    KEY(memory_reserved, V, 671088640, 0, 0) \
    KEY(memory_used, V, 64424509440, 268435456, 0) \
    KEY(bar1_memory_info, C, 0, 0, 0) \
    KEY(bar1_total, V, 137438953472, 0, 0) \
    KEY(bar1_used, V, 8388608, 1048576, 0) \
    KEY(temperature, V | C, 58, 1, 0) \
    KEY(temperature_v, C, 0, 0, 0) \
    KEY(memory_temperature, V | C, 66, 1, 0) \
    KEY(margin_temperature, V | C, 29, -1, 0) \
    KEY(temperature_threshold_shutdown, V | C, 92, 0, 0) \
    KEY(temperature_threshold_slowdown, V | C, 89, 0, 0) \
    KEY(temperature_threshold_mem_max, V | C, 95, 0, 0) \
    KEY(temperature_threshold_gpu_max, V | C, 87, 0, 0) \
    KEY(power_usage, V | C, 612000, 1500, 0) \
    KEY(power_management_mode, V | C, 1, 0, 0) \
    KEY(power_management_limit, V | C, 700000, 0, 0) \
    KEY(power_management_default_limit, V | C, 700000, 0, 0) \
    KEY(enforced_power_limit, V | C, 700000, 0, 0) \
    KEY(power_management_limit_constraints, C, 0, 0, 0) \
    KEY(power_limit_min, V, 200000, 0, 0) \
    KEY(power_limit_max, V, 700000, 0, 0) \
    KEY(total_energy_consumption, V | C | K, 0, 0, 0) \
    KEY(num_fans, V | C, 2, 0, 0) \
    KEY(fan_speed, V | C, 42, 1, 0) \
    KEY(clock_graphics, V | C, 1755, -15, 0) \
    KEY(clock_sm, V | C, 1755, -15, 0) \
    KEY(clock_memory, V | C, 2619, 0, 0) \
    KEY(clock_video, V | C, 1545, -15, 0) \
    KEY(max_clock_graphics, V | C, 1980, 0, 0) \
    KEY(max_clock_sm, V | C, 1980, 0, 0) \
    KEY(max_clock_memory, V | C, 2619, 0, 0) \
    KEY(max_clock_video, V | C, 1545, 0, 0) \
    KEY(applications_clock_graphics, V | C, 1980, 0, 0) \
    KEY(applications_clock_sm, V | C, 1980, 0, 0) \
    KEY(applications_clock_memory, V | C, 2619, 0, 0) \
    KEY(applications_clock_video, V | C, 1545, 0, 0) \
    KEY(performance_state, V | C, 0, 0, 0) \
    KEY(clocks_event_reasons, V | C, 0, 0, 0) \
    KEY(clocks_throttle_reasons, C, 0, 0, 0) \
    KEY(supported_clocks_event_reasons, V | C, 0x1ff, 0, 0) \
    KEY(supported_clocks_throttle_reasons, C, 0, 0, 0) \
    KEY(violation_power, V | C | K, 0, 0, 20000000) \
    KEY(violation_thermal, V | C | K, 0, 0, 1000000) \
    KEY(violation_sync_boost, V | C | K, 0, 0, 100000) \
    KEY(violation_board_limit, V | C | K, 0, 0, 0) \
    KEY(violation_low_utilization, V | C | K, 0, 0, 0) \
    KEY(violation_reliability, V | C | K, 0, 0, 0) \
    KEY(violation_total_app_clocks, V | C | K, 0, 0, 5000000) \
    KEY(violation_total_base_clocks, V | C | K, 0, 0, 5000000) \
    KEY(event_time_sw_thermal, V | C | K, 0, 0, 1000000) \
    KEY(event_time_hw_thermal, V | C | K, 0, 0, 500000) \
    KEY(event_time_hw_power_brake, V | C | K, 0, 0, 100000) \
    KEY(persistence_mode, V | C, 1, 0, 0) \
    KEY(compute_mode, V | C, 0, 0, 0) \
    KEY(display_active, V | C, 0, 0, 0) \
    KEY(display_mode, V | C, 0, 0, 0) \
    KEY(accounting_mode, V | C, 0, 0, 0) \
    KEY(pcie_link_generation, V | C, 5, 0, 0) \
    KEY(pcie_link_width, V | C, 16, 0, 0) \
    KEY(max_pcie_link_generation, V | C, 5, 0, 0) \
    KEY(gpu_max_pcie_link_generation, V | C, 5, 0, 0) \
    KEY(max_pcie_link_width, V | C, 16, 0, 0) \
    KEY(pcie_throughput_tx, V | C, 2100000, 10000, 0) \
    KEY(pcie_throughput_rx, V | C, 3200000, 10000, 0) \
    KEY(pcie_replay_counter, V | C | K, 0, 1, 0) \
    KEY(field_values, C, 0, 0, 0) \
    KEY(nvlink_state, C, 0, 0, 0) \
    KEY(nvlink_links, V | C, 18, 0, 0) \
    KEY(nvlink_down, V, 0, 0, 0) \
    KEY(nvlink_version, V | C, 6, 0, 0) \
    KEY(nvlink_speed, V | C, 26562, 0, 0) \
    KEY(nvlink_remote_pci_info, C, 0, 0, 0) \
    KEY(nvlink_data_tx, V | C | K, 0, 0, 150000000) \
    KEY(nvlink_data_rx, V | C | K, 0, 0, 140000000) \
    KEY(nvlink_raw_tx, V | C | K, 0, 0, 165000000) \
    KEY(nvlink_raw_rx, V | C | K, 0, 0, 154000000) \
    KEY(nvlink_replay_errors, V | C | K, 0, 0, 0) \
    KEY(nvlink_recovery_errors, V | C | K, 0, 0, 0) \
    KEY(nvlink_crc_flit_errors, V | C | K, 0, 0, 0) \
    KEY(nvlink_crc_data_errors, V | C | K, 0, 0, 0) \
    KEY(nvlink_ecc_data_errors, V | C | K, 0, 0, 0) \
    KEY(ecc_mode, C, 0, 0, 0) \
    KEY(ecc_current, V, 1, 0, 0) \
    KEY(ecc_pending, V, 1, 0, 0) \
    KEY(total_ecc_errors, C, 0, 0, 0) \
    KEY(memory_error_counter, C, 0, 0, 0) \
    KEY(ecc_dram_corrected_volatile, V, 0, 1, 0) \
    KEY(ecc_dram_uncorrected_volatile, V, 0, 0, 0) \
    KEY(ecc_dram_corrected_aggregate, V, 10, 1, 0) \
    KEY(ecc_dram_uncorrected_aggregate, V, 0, 0, 0) \
    KEY(ecc_sram_corrected_volatile, V, 0, 0, 0) \
    KEY(ecc_sram_uncorrected_volatile, V, 0, 0, 0) \
    KEY(ecc_sram_corrected_aggregate, V, 0, 0, 0) \
    KEY(ecc_sram_uncorrected_aggregate, V, 0, 0, 0) \
    KEY(retired_pages_sbe, V | C, 0, 0, 0) \
    KEY(retired_pages_dbe, V | C, 0, 0, 0) \
    KEY(retired_pages_pending, V | C, 0, 0, 0) \
    KEY(remapped_rows, C, 0, 0, 0) \
    KEY(remapped_correctable, V | C, 0, 1, 0) \
    KEY(remapped_uncorrectable, V | C, 0, 0, 0) \
    KEY(remapped_pending, V | C, 0, 0, 0) \
    KEY(remapped_failure, V | C, 0, 0, 0) \
    KEY(gpu_recovery_action, V | C, 0, 0, 0) \
    KEY(mig, V, 0, 0, 0) \
    KEY(mig_mode, C, 0, 0, 0) \
    KEY(mig_device, C | M, 0, 0, 0) \
    KEY(attributes, C | M, 0, 0, 0) \
    KEY(compute_running_processes, C | M, 0, 0, 0) \
    KEY(graphics_running_processes, C | M, 0, 0, 0) \
    KEY(mps_compute_running_processes, C | M, 0, 0, 0) \
    KEY(process_utilization, C, 0, 0, 0) \
    KEY(supported_event_types, V | C, 0x9f, 0, 0) \
    KEY(register_events, C, 0, 0, 0)

/* ERROR(name as in NVML_ERROR_*, number, what nvmlErrorString says) */
#define ERRORS(ERROR) \
    ERROR(OK, 0, "Success") \
    ERROR(UNINITIALIZED, 1, "Uninitialized") \
    ERROR(INVALID_ARGUMENT, 2, "Invalid Argument") \
    ERROR(NOT_SUPPORTED, 3, "Not Supported") \
    ERROR(NO_PERMISSION, 4, "Insufficient Permissions") \
    ERROR(NOT_FOUND, 6, "Not Found") \
    ERROR(INSUFFICIENT_SIZE, 7, "Insufficient Size") \
    ERROR(DRIVER_NOT_LOADED, 9, "Driver Not Loaded") \
    ERROR(TIMEOUT, 10, "Timeout") \
    ERROR(IRQ_ISSUE, 11, "Interrupt Request Issue") \
    ERROR(LIBRARY_NOT_FOUND, 12, "NVML Shared Library Not Found") \
    ERROR(FUNCTION_NOT_FOUND, 13, "Function Not Found") \
    ERROR(CORRUPTED_INFOROM, 14, "Corrupted infoROM") \
    ERROR(GPU_IS_LOST, 15, "GPU is lost") \
    ERROR(RESET_REQUIRED, 16, "GPU requires restart") \
    ERROR(OPERATING_SYSTEM, 17, "The operating system has blocked the request.") \
    ERROR(LIB_RM_VERSION_MISMATCH, 18, "RM has detected an NVML/RM version mismatch.") \
    ERROR(IN_USE, 19, "In use by another client") \
    ERROR(MEMORY, 20, "Insufficient Memory") \
    ERROR(NO_DATA, 21, "No data") \
    ERROR(INSUFFICIENT_RESOURCES, 23, "Insufficient Resources") \
    ERROR(ARGUMENT_VERSION_MISMATCH, 25, "Argument version mismatch") \
    ERROR(DEPRECATED, 26, "Deprecated") \
    ERROR(NOT_READY, 27, "Not Ready") \
    ERROR(GPU_NOT_FOUND, 28, "GPU not found") \
    ERROR(INVALID_STATE, 29, "Invalid state") \
    ERROR(UNKNOWN, 999, "Unknown Error")
