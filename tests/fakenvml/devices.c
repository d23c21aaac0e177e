/* Who is there: the system, its GPUs and MIG devices, how they are found and what they are called. */
#include "fakenvml.h"

struct pci_info {
    char legacy_bus_id[16];
    uint32_t domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
};

enum { PCI_DEVICE_ID = 0x233010de, PCI_SUBSYSTEM_ID = 0x16c110de, PROCESS_NAME_MAX = 256 };

nvml copy_text(const char *text, char *out, unsigned size)
{
    if (!out)
        return NVML_INVALID_ARGUMENT;
    if (strlen(text) >= size)
        return NVML_INSUFFICIENT_SIZE;
    strcpy(out, text);
    return NVML_OK;
}

API const char *nvmlErrorString(int code) { return error_text(code); }

#define SYSTEM_TEXT(function, field) \
    API nvml function(char *out, unsigned size) \
    { \
        struct view view; \
        nvml result = enter_system(&view); \
        return result != NVML_OK ? result : leave(copy_text(view.scenario->field, out, size)); \
    }
SYSTEM_TEXT(nvmlSystemGetDriverVersion, driver)
SYSTEM_TEXT(nvmlSystemGetNVMLVersion, nvml_version)

#define SYSTEM_NUMBER(function, field) \
    API nvml function(int *out) \
    { \
        struct view view; \
        nvml result = enter_system(&view); \
        if (result != NVML_OK) \
            return result; \
        *out = view.scenario->field; \
        return leave(NVML_OK); \
    }
SYSTEM_NUMBER(nvmlSystemGetCudaDriverVersion, cuda)
SYSTEM_NUMBER(nvmlSystemGetCudaDriverVersion_v2, cuda)
SYSTEM_NUMBER(nvmlDeviceGetCount_v2, gpus)
SYSTEM_NUMBER(nvmlDeviceGetCount, gpus)

API nvml nvmlSystemGetProcessName(unsigned pid, char *out, unsigned size)
{
    char file_name[64], name[PROCESS_NAME_MAX] = "";
    snprintf(file_name, sizeof file_name, "/proc/%u/cmdline", pid);
    FILE *file = fopen(file_name, "re");
    if (!file)
        return NVML_NOT_FOUND;
    size_t length = fread(name, 1, sizeof name - 1, file);
    fclose(file);
    return length ? copy_text(name, out, size) : NVML_NO_PERMISSION;
}

static int find_index(const struct view *view, const void *index, unsigned gpu, int mig)
{
    (void)view;
    return mig < 0 && gpu == *(const unsigned *)index;
}

static void uuid_of(const struct view *view, unsigned gpu, int mig, char *out)
{
    const char *uuid = view->scenario->gpu[gpu].text[TEXT_uuid];
    if (mig < 0)
        memcpy(out, uuid, TEXT_SIZE);
    else
        snprintf(out, TEXT_SIZE, "MIG-%08x-fa4e-5c2d-9000-%012x", 0x2000 + gpu, 0xb0 + mig);
}

static int find_uuid(const struct view *view, const void *wanted, unsigned gpu, int mig)
{
    char uuid[TEXT_SIZE];
    uuid_of(view, gpu, mig, uuid);
    return !strcmp(uuid, wanted);
}

static int find_serial(const struct view *view, const void *wanted, unsigned gpu, int mig)
{
    return mig < 0 && !strcmp(view->scenario->gpu[gpu].text[TEXT_serial], wanted);
}

static void parse_bus_id(const char *text, uint32_t part[3])
{
    part[0] = part[1] = part[2] = 0;
    if (sscanf(text, "%x:%x:%x", &part[0], &part[1], &part[2]) < 3) {
        part[0] = 0;
        sscanf(text, "%x:%x", &part[1], &part[2]);
    }
}

static int find_bus_id(const struct view *view, const void *wanted, unsigned gpu, int mig)
{
    uint32_t asked[3], found[3];
    parse_bus_id(wanted, asked);
    parse_bus_id(view->scenario->gpu[gpu].text[TEXT_pci_bus_id], found);
    return mig < 0 && !memcmp(asked, found, sizeof asked);
}

typedef int (*finder)(const struct view *, const void *, unsigned, int);

static device search(const struct view *view, finder is_it, const void *wanted)
{
    for (int gpu = 0; gpu < view->scenario->gpus; gpu++)
        for (int mig = -1; mig < view->scenario->gpu[gpu].value[KEY_mig]; mig++)
            if (is_it(view, wanted, (unsigned)gpu, mig))
                return handle_of(view, (unsigned)gpu, mig);
    return NULL;
}

/* The found GPU is then called by its handle, so that one that is lost, slow or broken is so here too. */
static nvml find(finder is_it, const void *wanted, nvml if_absent, device *out)
{
    struct view view;
    nvml result = enter_system(&view);
    if (result != NVML_OK)
        return result;
    device found = search(&view, is_it, wanted);
    leave(NVML_OK);
    if (!found)
        return if_absent;
    result = enter(found, (uintptr_t)found >> 8 & 0xff ? KEY_mig_device : KEY_handle, &view);
    *out = found;
    return result == NVML_OK ? leave(NVML_OK) : result;
}

API nvml nvmlDeviceGetHandleByIndex_v2(unsigned index, device *out)
{
    return find(find_index, &index, NVML_INVALID_ARGUMENT, out);
}
API nvml nvmlDeviceGetHandleByIndex(unsigned index, device *out) { return nvmlDeviceGetHandleByIndex_v2(index, out); }
API nvml nvmlDeviceGetHandleByUUID(const char *uuid, device *out) { return find(find_uuid, uuid, NVML_NOT_FOUND, out); }
API nvml nvmlDeviceGetHandleBySerial(const char *serial, device *out)
{
    return find(find_serial, serial, NVML_NOT_FOUND, out);
}
API nvml nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, device *out)
{
    return find(find_bus_id, bus_id, NVML_NOT_FOUND, out);
}

API nvml nvmlDeviceGetIndex(device handle, unsigned *out)
{
    struct view view;
    nvml result = enter(handle, KEY_index, &view);
    if (result != NVML_OK)
        return result;
    *out = view.mig >= 0 ? (unsigned)view.mig : view.index;
    return leave(NVML_OK);
}

API nvml nvmlDeviceGetMinorNumber(device handle, unsigned *out)
{
    struct view view;
    nvml result = enter(handle, KEY_minor_number, &view);
    if (result != NVML_OK)
        return result;
    *out = view.index;
    return leave(NVML_OK);
}

API nvml nvmlDeviceGetUUID(device handle, char *out, unsigned size)
{
    struct view view;
    char uuid[TEXT_SIZE];
    nvml result = enter(handle, KEY_uuid, &view);
    if (result != NVML_OK)
        return result;
    uuid_of(&view, view.index, view.mig, uuid);
    return leave(copy_text(uuid, out, size));
}

API nvml nvmlDeviceGetName(device handle, char *out, unsigned size)
{
    struct view view;
    char name[TEXT_SIZE + 16];
    nvml result = enter(handle, KEY_name, &view);
    if (result != NVML_OK)
        return result;
    snprintf(name, sizeof name, "%s%s", view.gpu->text[TEXT_name], view.mig >= 0 ? " MIG 3g.40gb" : "");
    return leave(copy_text(name, out, size));
}

#define DEVICE_TEXT(function, key) \
    API nvml function(device handle, char *out, unsigned size) \
    { \
        struct view view; \
        nvml result = enter(handle, KEY_##key, &view); \
        return result != NVML_OK ? result : leave(copy_text(view.gpu->text[TEXT_##key], out, size)); \
    }
DEVICE_TEXT(nvmlDeviceGetSerial, serial)
DEVICE_TEXT(nvmlDeviceGetVbiosVersion, vbios_version)

static nvml fill_pci_info(const char *bus_id, struct pci_info *out)
{
    uint32_t part[3];
    parse_bus_id(bus_id, part);
    *out = (struct pci_info){.domain = part[0], .bus = part[1], .device = part[2],
                             .device_id = PCI_DEVICE_ID, .subsystem_id = PCI_SUBSYSTEM_ID};
    snprintf(out->legacy_bus_id, sizeof out->legacy_bus_id, "%04X:%02X:%02X.0", part[0] & 0xffff, part[1] & 0xff,
             part[2] & 0xff);
    return copy_text(bus_id, out->bus_id, sizeof out->bus_id);
}

API nvml nvmlDeviceGetPciInfo_v3(device handle, struct pci_info *out)
{
    struct view view;
    nvml result = enter(handle, KEY_pci_info, &view);
    return result != NVML_OK ? result : leave(fill_pci_info(view.gpu->text[TEXT_pci_bus_id], out));
}

/* At the other end of every link is one of the four NVSwitches of a chassis. */
API nvml nvmlDeviceGetNvLinkRemotePciInfo_v2(device handle, unsigned link, struct pci_info *out)
{
    struct view view;
    char bus_id[32];
    nvml result = enter(handle, KEY_nvlink_remote_pci_info, &view);
    if (result != NVML_OK)
        return result;
    if (link >= view.gpu->value[KEY_nvlink_links])
        return leave(NVML_INVALID_ARGUMENT);
    snprintf(bus_id, sizeof bus_id, "00000000:%02X:00.0", 7 + link % 4);
    return leave(fill_pci_info(bus_id, out));
}
