/* MIG devices of a GPU, and the processes on either. */
#include "fakenvml.h"

struct attributes {
    uint32_t multiprocessors, copy_engines, decoders, encoders, jpeg, ofa, gpu_slices, compute_slices;
    uint64_t memory_mib;
};
struct process_info { uint32_t pid; uint64_t bytes; uint32_t gpu_instance, compute_instance; };
struct process_sample { uint32_t pid; uint64_t microseconds; uint32_t sm, memory, encoder, decoder; };

enum { MULTIPROCESSORS = 132 };

API nvml nvmlDeviceGetMigMode(device handle, unsigned *current, unsigned *pending)
{
    struct view view;
    nvml result = enter(handle, KEY_mig_mode, &view);
    if (result != NVML_OK)
        return result;
    *current = *pending = view.gpu->value[KEY_mig] > 0;
    return leave(NVML_OK);
}

API nvml nvmlDeviceGetMaxMigDeviceCount(device handle, unsigned *out)
{
    struct view view;
    nvml result = enter(handle, KEY_mig_device, &view);
    if (result != NVML_OK)
        return result;
    *out = view.gpu->value[KEY_mig] > 0 ? MIG_MAX : 0;
    return leave(NVML_OK);
}

API nvml nvmlDeviceGetMigDeviceHandleByIndex(device handle, unsigned index, device *out)
{
    struct view view;
    nvml result = enter(handle, KEY_mig_device, &view);
    if (result != NVML_OK)
        return result;
    if (!view.gpu->value[KEY_mig])
        return leave(NVML_NOT_SUPPORTED);
    if (index >= view.gpu->value[KEY_mig])
        return leave(index < MIG_MAX ? NVML_NOT_FOUND : NVML_INVALID_ARGUMENT);
    *out = handle_of(&view, view.index, (int)index);
    return leave(NVML_OK);
}

API nvml nvmlDeviceIsMigDeviceHandle(device handle, unsigned *out)
{
    struct view view;
    nvml result = enter(handle, KEY_mig_device, &view);
    if (result != NVML_OK)
        return result;
    *out = view.mig >= 0;
    return leave(NVML_OK);
}

API nvml nvmlDeviceGetDeviceHandleFromMigDeviceHandle(device handle, device *out)
{
    struct view view;
    nvml result = enter(handle, KEY_mig_device, &view);
    if (result != NVML_OK)
        return result;
    *out = handle_of(&view, view.index, -1);
    return leave(view.mig >= 0 ? NVML_OK : NVML_INVALID_ARGUMENT);
}

/* Instance ids of a MIG device: GPU instance = its number + 1, with one compute instance, 0. */
static nvml instance_id(device handle, int is_gpu_instance, unsigned *out)
{
    struct view view;
    nvml result = enter(handle, KEY_mig_device, &view);
    if (result != NVML_OK)
        return result;
    *out = is_gpu_instance ? (unsigned)view.mig + 1 : 0;
    return leave(view.mig >= 0 ? NVML_OK : NVML_NOT_SUPPORTED);
}
API nvml nvmlDeviceGetGpuInstanceId(device handle, unsigned *out) { return instance_id(handle, 1, out); }
API nvml nvmlDeviceGetComputeInstanceId(device handle, unsigned *out) { return instance_id(handle, 0, out); }

API nvml nvmlDeviceGetAttributes_v2(device handle, struct attributes *out)
{
    struct view view;
    nvml result = enter(handle, KEY_attributes, &view);
    if (result != NVML_OK)
        return result;
    unsigned parts = view.mig < 0 ? 1 : (unsigned)view.gpu->value[KEY_mig];
    *out = (struct attributes){
        .multiprocessors = MULTIPROCESSORS / parts, .copy_engines = 1, .decoders = 1, .jpeg = 1, .ofa = 1,
        .gpu_slices = MIG_MAX / parts, .compute_slices = MIG_MAX / parts,
        .memory_mib = (uint64_t)view.gpu->value[KEY_memory_total] / parts >> 20,
    };
    return leave(NVML_OK);
}

static int is_shown(const struct view *view, const struct process *process)
{
    return view->mig < 0 || process->instance == (uint32_t)view->mig + 1;
}

static nvml fill_processes(const struct view *view, enum process_kind kind, unsigned *count, struct process_info *out)
{
    const struct process_list *processes = &view->gpu->processes[kind];
    unsigned room = out ? *count : 0;
    *count = 0;
    for (unsigned i = 0; i < processes->count; i++) {
        const struct process *process = &processes->list[i];
        if (!is_shown(view, process))
            continue;
        uint32_t compute = process->instance == NOT_AVAILABLE ? NOT_AVAILABLE : 0;
        if (*count < room)
            out[*count] = (struct process_info){process->pid, process->bytes, process->instance, compute};
        ++*count;
    }
    return *count > room ? NVML_INSUFFICIENT_SIZE : NVML_OK;
}

#define PROCESSES(function, key, kind) \
    API nvml function(device handle, unsigned *count, struct process_info *out) \
    { \
        struct view view; \
        nvml result = enter(handle, key, &view); \
        return result != NVML_OK ? result : leave(fill_processes(&view, kind, count, out)); \
    }
PROCESSES(nvmlDeviceGetComputeRunningProcesses_v2, KEY_compute_running_processes, PROCESSES_compute)
PROCESSES(nvmlDeviceGetComputeRunningProcesses_v3, KEY_compute_running_processes, PROCESSES_compute)
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v2, KEY_graphics_running_processes, PROCESSES_graphics)
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3, KEY_graphics_running_processes, PROCESSES_graphics)
PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v2, KEY_mps_compute_running_processes, PROCESSES_mps)
PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v3, KEY_mps_compute_running_processes, PROCESSES_mps)

static nvml fill_samples(const struct view *view, struct process_sample *out, unsigned *count)
{
    const struct process_list *processes = &view->gpu->processes[PROCESSES_compute];
    unsigned room = out ? *count : 0;
    *count = processes->count;
    if (!processes->count)
        return NVML_NOT_FOUND;
    if (room < processes->count)
        return NVML_INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < processes->count; i++)
        out[i] = (struct process_sample){
            .pid = processes->list[i].pid, .microseconds = (uint64_t)unix_us(),
            .sm = (uint32_t)value(view, KEY_utilization_gpu) / processes->count,
            .memory = (uint32_t)value(view, KEY_utilization_memory) / processes->count,
        };
    return NVML_OK;
}

API nvml nvmlDeviceGetProcessUtilization(device handle, struct process_sample *out, unsigned *count, uint64_t last_seen)
{
    struct view view;
    (void)last_seen;
    nvml result = enter(handle, KEY_process_utilization, &view);
    return result != NVML_OK ? result : leave(fill_samples(&view, out, count));
}
