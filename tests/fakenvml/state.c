/* The scenario in force: loads it when its file changes, starts and stops the library, lets calls in and out. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <time.h>

#include "fakenvml.h"

enum { CHECK_EVERY_NS = 5000000, SLICE_MS = 10 };

struct counter { double start; int64_t start_ns; double rate; };
struct identity { ino_t inode; off_t size; struct timespec changed; };

static struct scenario buffers[2];
static struct scenario *live = &buffers[0];
static struct counter counters[GPUS_MAX][KEY_COUNT];
/* Else calls that follow one another without a pause would keep a new scenario out for ever. */
static pthread_rwlock_t lock = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
static unsigned references, generation;

static pthread_mutex_t load_lock = PTHREAD_MUTEX_INITIALIZER;
static struct identity loaded;
static int is_loaded;
static char path[4096];
static _Atomic int64_t last_check;

static int64_t clock_ns(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

int64_t now_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

int64_t unix_us(void)
{
    return clock_ns(CLOCK_REALTIME) / 1000;
}

void sleep_ms(int64_t milliseconds)
{
    struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    while (nanosleep(&time, &time) && errno == EINTR)
        ;
}

static double count(const struct counter *counter, int64_t now)
{
    return counter->start + counter->rate * ((double)(now - counter->start_ns) / 1e9);
}

/* A counter that was set by value stands still; the energy follows the power. */
static double rate_of(const struct gpu *gpu, enum key key)
{
    if (gpu->is_rate_set[key])
        return gpu->rate[key];
    if (gpu->is_set[key])
        return 0;
    return key == KEY_total_energy_consumption ? (double)gpu->value[KEY_power_usage] : gpu->rate[key];
}

/* Goes on from where it stood: a jump backwards would look like a reset, which only a driver reload is. */
static void carry_over(struct counter *counter, const struct gpu *old, const struct gpu *new, enum key key,
                       int is_reset)
{
    int64_t now = now_ns();
    int is_new_value = new->is_set[key] && (!old || !old->is_set[key] || old->value[key] != new->value[key]);
    if (is_new_value || is_reset)
        counter->start = (double)new->value[key];
    else
        counter->start = old ? count(counter, now) : (double)new->value[key];
    counter->start_ns = old || new->is_set[key] ? now : 0;
    counter->rate = rate_of(new, key);
}

static void carry_over_all(const struct scenario *old, const struct scenario *new)
{
    int is_reset = old && old->reload != new->reload;
    for (unsigned i = 0; i < GPUS_MAX; i++)
        for (enum key key = 0; key < KEY_COUNT; key++)
            if (key_table[key].flags & K)
                carry_over(&counters[i][key], old ? &old->gpu[i] : NULL, &new->gpu[i], key, is_reset);
}

static struct identity identity_of(const struct stat *found)
{
    return (struct identity){found->st_ino, found->st_size, found->st_mtim};
}

static int is_same(const struct identity *a, const struct identity *b)
{
    return a->inode == b->inode && a->size == b->size && a->changed.tv_sec == b->changed.tv_sec
        && a->changed.tv_nsec == b->changed.tv_nsec;
}

static void publish(struct scenario *next)
{
    pthread_rwlock_wrlock(&lock);
    carry_over_all(is_loaded ? live : NULL, next);
    live = next;
    pthread_rwlock_unlock(&lock);
    is_loaded = 1;
}

/* Only load_lock's holder calls this, so that nobody else touches the buffer that is not live. */
static void load(void)
{
    struct scenario *spare = live == &buffers[0] ? &buffers[1] : &buffers[0];
    struct stat found;
    FILE *file = *path ? fopen(path, "re") : NULL;
    loaded = (struct identity){0};
    if (file && !fstat(fileno(file), &found))
        loaded = identity_of(&found);
    scenario_parse(spare, file);
    if (file)
        fclose(file);
    publish(spare);
}

static int is_changed(void)
{
    struct stat found;
    struct identity now = {0};
    if (*path && !stat(path, &found))
        now = identity_of(&found);
    return !is_same(&now, &loaded);
}

/* Whoever comes while another loads waits for it: a call that went on would read the scenario of before. */
static void refresh(void)
{
    int64_t now = clock_ns(CLOCK_MONOTONIC_COARSE);
    if (now - atomic_load(&last_check) < CHECK_EVERY_NS)
        return;
    pthread_mutex_lock(&load_lock);
    if (now - atomic_load(&last_check) >= CHECK_EVERY_NS) {
        if (is_loaded && is_changed())
            load();
        atomic_store(&last_check, now);
    }
    pthread_mutex_unlock(&load_lock);
}

/* The path is read at each first init and not once, for tests that run in one process. */
static void load_for_init(void)
{
    const char *wanted = getenv("FAKENVML_SCENARIO");
    pthread_mutex_lock(&load_lock);
    if (!is_loaded || strcmp(path, wanted ? wanted : "")) {
        snprintf(path, sizeof path, "%s", wanted ? wanted : "");
        is_loaded = 0;
        load();
    } else if (is_changed())
        load();
    pthread_mutex_unlock(&load_lock);
}

static nvml start(void)
{
    nvml result = NVML_OK;
    pthread_rwlock_wrlock(&lock);
    if (live->is_broken)
        result = NVML_INVALID_STATE;
    else if (references == 0) {
        result = live->init;
        generation = live->reload;
    }
    references += result == NVML_OK;
    pthread_rwlock_unlock(&lock);
    return result;
}

API nvml nvmlInitWithFlags(unsigned flags)
{
    (void)flags;
    pthread_rwlock_rdlock(&lock);
    int is_first = references == 0;
    pthread_rwlock_unlock(&lock);
    if (!is_first)
        return start();
    load_for_init();
    pthread_rwlock_rdlock(&lock);
    int delay_ms = live->init_delay_ms;
    pthread_rwlock_unlock(&lock);
    sleep_ms(delay_ms);
    return start();
}

API nvml nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
API nvml nvmlInit(void) { return nvmlInitWithFlags(0); }

API nvml nvmlShutdown(void)
{
    pthread_rwlock_wrlock(&lock);
    nvml result = references ? NVML_OK : NVML_UNINITIALIZED;
    int is_last = references == 1;
    references -= references > 0;
    pthread_rwlock_unlock(&lock);
    if (is_last)
        events_reset();
    return result;
}

static nvml library_state(void)
{
    if (!references)
        return NVML_UNINITIALIZED;
    if (live->is_broken)
        return NVML_INVALID_STATE;
    return live->reload == generation ? NVML_OK : NVML_UNKNOWN;
}

/* A handle is a number: a generation, a MIG device + 1 or 0, a GPU + 1. Nothing ever follows it as a pointer. */
device handle_of(const struct view *view, unsigned index, int mig)
{
    uintptr_t bits = (uintptr_t)view->scenario->reload << 16 | (uintptr_t)(mig + 1) << 8 | (index + 1);
    return (device)bits;
}

static nvml look_at(device handle, enum key call, struct view *view)
{
    uintptr_t bits = (uintptr_t)handle;
    view->index = (unsigned)(bits & 0xff) - 1;
    view->mig = (int)(bits >> 8 & 0xff) - 1;
    if (view->index >= GPUS_MAX || bits >> 16 != generation)
        return NVML_INVALID_ARGUMENT;
    view->gpu = &live->gpu[view->index];
    if ((int)view->index >= live->gpus || view->gpu->is_lost)
        return NVML_GPU_IS_LOST;
    if (view->mig >= view->gpu->value[KEY_mig])
        return NVML_INVALID_ARGUMENT;
    if (view->mig >= 0 && !(key_table[call].flags & M))
        return NVML_NOT_SUPPORTED;
    return view->gpu->error[call];
}

static nvml look(device handle, enum key call, struct view *view)
{
    nvml state = library_state();
    *view = (struct view){.scenario = live, .mig = -1};
    return state == NVML_OK ? look_at(handle, call, view) : state;
}

/* Slept in slices and without the lock: a GPU that hangs delays nobody else, and a new scenario ends its hang. */
nvml enter(device handle, enum key call, struct view *view)
{
    int64_t slept = 0, wait;
    for (;; slept += wait) {
        refresh();
        pthread_rwlock_rdlock(&lock);
        nvml result = look(handle, call, view);
        wait = view->gpu ? (int64_t)view->gpu->all_delay_ms + view->gpu->delay_ms[call] - slept : 0;
        if (wait <= 0 && result != NVML_OK)
            pthread_rwlock_unlock(&lock);
        if (wait <= 0)
            return result;
        pthread_rwlock_unlock(&lock);
        wait = wait < SLICE_MS ? wait : SLICE_MS;
        sleep_ms(wait);
    }
}

nvml enter_system(struct view *view)
{
    refresh();
    pthread_rwlock_rdlock(&lock);
    nvml result = library_state();
    *view = (struct view){.scenario = live, .mig = -1};
    if (result != NVML_OK)
        pthread_rwlock_unlock(&lock);
    return result;
}

nvml leave(nvml result)
{
    pthread_rwlock_unlock(&lock);
    return result;
}

nvml key_error(const struct view *view, enum key call)
{
    return view->gpu->error[call];
}

int64_t value(const struct view *view, enum key key)
{
    if (key_table[key].flags & K)
        return (int64_t)count(&counters[view->index][key], now_ns());
    return view->gpu->value[key];
}
