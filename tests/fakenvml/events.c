/* Event sets, and the scenario's Xids delivered to them, each once in a process. */
#include "fakenvml.h"

enum { SETS_MAX = 64, XID_CRITICAL_ERROR = 8, WAIT_SLICE_MS = 200 };

struct set { int is_used; uint64_t gpus, types; };
struct event_v1 { device handle; uint64_t type, data; };
struct event { struct event_v1 v1; uint32_t gpu_instance, compute_instance; };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct set sets[SETS_MAX];
static char is_delivered[SERIALS_MAX];

void events_reset(void)
{
    pthread_mutex_lock(&lock);
    memset(sets, 0, sizeof sets);
    pthread_mutex_unlock(&lock);
}

/* A set's handle is its place + 1, and like a GPU's is never followed. */
static struct set *set_of(void *handle)
{
    uintptr_t place = (uintptr_t)handle - 1;
    return place < SETS_MAX && sets[place].is_used ? &sets[place] : NULL;
}

static void *take_set(void)
{
    for (uintptr_t i = 0; i < SETS_MAX; i++)
        if (!sets[i].is_used) {
            sets[i] = (struct set){.is_used = 1};
            return (void *)(i + 1);
        }
    return NULL;
}

API nvml nvmlEventSetCreate(void **out)
{
    struct view view;
    nvml result = enter_system(&view);
    if (result != NVML_OK)
        return result;
    pthread_mutex_lock(&lock);
    *out = take_set();
    pthread_mutex_unlock(&lock);
    return leave(*out ? NVML_OK : NVML_INSUFFICIENT_RESOURCES);
}

API nvml nvmlEventSetFree(void *handle)
{
    pthread_mutex_lock(&lock);
    struct set *set = set_of(handle);
    if (set)
        set->is_used = 0;
    pthread_mutex_unlock(&lock);
    return set ? NVML_OK : NVML_INVALID_ARGUMENT;
}

static nvml add_gpu(void *handle, unsigned gpu, uint64_t types)
{
    pthread_mutex_lock(&lock);
    struct set *set = set_of(handle);
    if (set) {
        set->gpus |= 1ULL << gpu;
        set->types |= types;
    }
    pthread_mutex_unlock(&lock);
    return set ? NVML_OK : NVML_INVALID_ARGUMENT;
}

API nvml nvmlDeviceRegisterEvents(device handle, uint64_t types, void *set)
{
    struct view view;
    nvml result = enter(handle, KEY_register_events, &view);
    if (result != NVML_OK)
        return result;
    if (types & ~(uint64_t)value(&view, KEY_supported_event_types))
        return leave(NVML_NOT_SUPPORTED);
    return leave(add_gpu(set, view.index, types));
}

static int is_due(const struct set *set, const struct xid *xid)
{
    return set->types & XID_CRITICAL_ERROR && set->gpus >> xid->gpu & 1 && !is_delivered[xid->serial];
}

static nvml deliver(const struct view *view, const struct xid *xid, struct event *out)
{
    is_delivered[xid->serial] = 1;
    *out = (struct event){
        .v1 = {handle_of(view, xid->gpu, -1), XID_CRITICAL_ERROR, xid->code},
        .gpu_instance = NOT_AVAILABLE, .compute_instance = NOT_AVAILABLE,
    };
    return NVML_OK;
}

static nvml take_event(const struct view *view, void *handle, struct event *out)
{
    const struct scenario *scenario = view->scenario;
    const struct set *set = set_of(handle);
    if (!set)
        return NVML_INVALID_ARGUMENT;
    for (unsigned i = 0; i < scenario->xid_count; i++)
        if (is_due(set, &scenario->xids[i]))
            return deliver(view, &scenario->xids[i], out);
    return scenario->event_wait == NVML_OK ? NVML_TIMEOUT : scenario->event_wait;
}

static nvml poll_event(void *handle, struct event *out)
{
    struct view view;
    nvml result = enter_system(&view);
    if (result != NVML_OK)
        return result;
    pthread_mutex_lock(&lock);
    result = take_event(&view, handle, out);
    pthread_mutex_unlock(&lock);
    return leave(result);
}

API nvml nvmlEventSetWait_v2(void *handle, struct event *out, unsigned timeout_ms)
{
    int64_t end = now_ns() + timeout_ms * 1000000LL;
    for (;;) {
        nvml result = poll_event(handle, out);
        int64_t left_ms = (end - now_ns() + 999999) / 1000000;
        if (result != NVML_TIMEOUT || left_ms <= 0)
            return result;
        sleep_ms(left_ms < WAIT_SLICE_MS ? left_ms : WAIT_SLICE_MS);
    }
}

API nvml nvmlEventSetWait(void *handle, struct event_v1 *out, unsigned timeout_ms)
{
    struct event event = {0};
    nvml result = nvmlEventSetWait_v2(handle, &event, timeout_ms);
    if (result == NVML_OK)
        *out = event.v1;
    return result;
}
