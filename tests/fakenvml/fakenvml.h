/* What the files of the stand-in share: the scenario as parsed, and the way into a call and out of it. */
#ifndef FAKENVML_H
#define FAKENVML_H

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "keys.h"

#define GPUS_MAX 64
#define MIG_MAX 7
#define XIDS_MAX 1024
#define SERIALS_MAX 65536
#define PROCESSES_MAX 64
#define TEXT_SIZE 96
#define NOT_AVAILABLE UINT32_MAX
#define VALUE_NOT_AVAILABLE UINT64_MAX
#define API __attribute__((visibility("default")))

enum { V = 1, C = 2, M = 4, K = 8 };

#define AS_ENUM(name, ...) KEY_##name,
enum key { KEYS(AS_ENUM) KEY_COUNT };

#define AS_CODE(name, number, text) NVML_##name = number,
typedef enum { ERRORS(AS_CODE) } nvml;

typedef void *device;

enum text { TEXT_name, TEXT_uuid, TEXT_serial, TEXT_vbios_version, TEXT_pci_bus_id, TEXT_COUNT };
enum process_kind { PROCESSES_compute, PROCESSES_graphics, PROCESSES_mps, PROCESS_KINDS };

struct process { uint32_t pid, instance; uint64_t bytes; };
struct process_list { unsigned count; struct process list[PROCESSES_MAX]; };
struct key_info { const char *name; int flags; int64_t value, step; double rate; };

struct gpu {
    int64_t value[KEY_COUNT];
    double rate[KEY_COUNT];
    nvml error[KEY_COUNT];
    int delay_ms[KEY_COUNT];
    char is_set[KEY_COUNT], is_rate_set[KEY_COUNT];
    int all_delay_ms, is_lost;
    char text[TEXT_COUNT][TEXT_SIZE];
    struct process_list processes[PROCESS_KINDS];
};

struct xid { unsigned gpu, code, serial; };

struct scenario {
    char driver[TEXT_SIZE], nvml_version[TEXT_SIZE];
    int cuda, gpus, init_delay_ms, is_broken;
    unsigned reload;
    nvml init, event_wait;
    unsigned xid_count;
    struct xid xids[XIDS_MAX];
    struct gpu gpu[GPUS_MAX];
};

/* One call's look at one GPU, or at one MIG device of it (mig is -1 where it is the GPU). */
struct view { const struct scenario *scenario; const struct gpu *gpu; unsigned index; int mig; };

extern const struct key_info key_table[KEY_COUNT];
const char *error_text(int code);
void scenario_parse(struct scenario *scenario, FILE *file);

/* A call that gets NVML_OK from enter() holds the scenario for reading until leave(). */
nvml enter(device handle, enum key call, struct view *view);
nvml enter_system(struct view *view);
nvml leave(nvml result);
nvml key_error(const struct view *view, enum key call);
int64_t value(const struct view *view, enum key key);

device handle_of(const struct view *view, unsigned index, int mig);
int64_t now_ns(void);
int64_t unix_us(void);
void sleep_ms(int64_t milliseconds);
void events_reset(void);
nvml copy_text(const char *text, char *out, unsigned size);

#endif
