/* Reads a scenario: defaults first, then the file's lines, of which a later one wins. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>

#include "fakenvml.h"

#define AS_INFO(name, flags, value, step, rate) {#name, flags, value, step, rate},
const struct key_info key_table[KEY_COUNT] = {KEYS(AS_INFO)};

#define AS_ERROR(name, number, text) {#name, number, text},
static const struct { const char *name; int code; const char *text; } error_table[] = {ERRORS(AS_ERROR)};
#define ERROR_COUNT (sizeof error_table / sizeof *error_table)

static const char *const text_names[TEXT_COUNT] = {"name", "uuid", "serial", "vbios_version", "pci_bus_id"};
static const char *const process_names[PROCESS_KINDS] = {"processes", "graphics_processes", "mps_processes"};

/* Steps wrap, so that the 64th GPU's temperature is still one a GPU may have. */
enum { STEPS = 24, CHASSIS = 8 };

struct parser { struct scenario *scenario; char *rest; int line; };

const char *error_text(int code)
{
    for (size_t i = 0; i < ERROR_COUNT; i++)
        if (error_table[i].code == code)
            return error_table[i].text;
    return "Unknown Error";
}

static void gpu_texts(struct gpu *gpu, unsigned i)
{
    static const unsigned char buses[CHASSIS] = {0x1b, 0x43, 0x52, 0x61, 0x9d, 0xc3, 0xd1, 0xdf};
    snprintf(gpu->text[TEXT_name], TEXT_SIZE, "NVIDIA H100 80GB HBM3");
    snprintf(gpu->text[TEXT_uuid], TEXT_SIZE, "GPU-%08x-fa4e-4b1d-8000-%012x", 0x1000 + i, 0xa0 + i);
    snprintf(gpu->text[TEXT_serial], TEXT_SIZE, "16500230%05u", i);
    snprintf(gpu->text[TEXT_vbios_version], TEXT_SIZE, "96.00.89.00.%02X", i);
    snprintf(gpu->text[TEXT_pci_bus_id], TEXT_SIZE, "%08X:%02X:00.0", i / CHASSIS, buses[i % CHASSIS]);
}

static void gpu_defaults(struct gpu *gpu, unsigned i)
{
    for (int key = 0; key < KEY_COUNT; key++) {
        gpu->value[key] = key_table[key].value + key_table[key].step * (i % STEPS);
        gpu->rate[key] = key_table[key].rate * (1 + 0.01 * i);
    }
    gpu_texts(gpu, i);
}

static void defaults(struct scenario *scenario)
{
    memset(scenario, 0, sizeof *scenario);
    strcpy(scenario->driver, "580.95.05");
    strcpy(scenario->nvml_version, "13.580.95.05");
    scenario->cuda = 13000;
    scenario->gpus = 8;
    for (unsigned i = 0; i < GPUS_MAX; i++)
        gpu_defaults(&scenario->gpu[i], i);
}

__attribute__((format(printf, 2, 3))) static void complain(struct parser *parser, const char *format, ...)
{
    va_list arguments;
    if (parser->scenario->is_broken++)
        return;
    va_start(arguments, format);
    fprintf(stderr, "fakenvml: scenario line %d: ", parser->line);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
}

static const char *word(struct parser *parser)
{
    const char *found = strtok_r(NULL, " \t\n", &parser->rest);
    return found ? found : "";
}

static double number(struct parser *parser, const char *text)
{
    char *end;
    int is_plain = !strpbrk(text, ".eE") || strpbrk(text, "xX");
    double found = is_plain ? (double)strtoll(text, &end, 0) : strtod(text, &end);
    if (!*text || *end)
        complain(parser, "'%s' is not a number", text);
    return found;
}

static int within(struct parser *parser, const char *text, int least, int most)
{
    double found = number(parser, text);
    if (found >= least && found <= most)
        return (int)found;
    complain(parser, "'%s' is not within %d to %d", text, least, most);
    return least;
}

static nvml error_named(struct parser *parser, const char *name)
{
    for (size_t i = 0; i < ERROR_COUNT; i++)
        if (!strcmp(error_table[i].name, name))
            return (nvml)error_table[i].code;
    complain(parser, "'%s' is not the name of an NVML error", name);
    return NVML_UNKNOWN;
}

static int lookup(const char *name)
{
    for (int key = 0; key < KEY_COUNT; key++)
        if (!strcmp(key_table[key].name, name))
            return key;
    return KEY_COUNT;
}

/* KEY_COUNT where there is no such key, which the caller must take for nothing to do. */
static int key_with(struct parser *parser, const char *name, int flag)
{
    int key = lookup(name);
    if (key == KEY_COUNT)
        complain(parser, "there is no key '%s'", name);
    else if (!(key_table[key].flags & flag))
        complain(parser, flag == V ? "'%s' is a call and holds no value"
                                   : "'%s' is a value and not a call: name the call that answers it", name);
    else
        return key;
    return KEY_COUNT;
}

static void set_error(struct parser *parser, struct gpu *gpu, const char *name, nvml error)
{
    int key = key_with(parser, name, C);
    if (key < KEY_COUNT)
        gpu->error[key] = error;
}

static void set_rate(struct parser *parser, struct gpu *gpu, const char *name)
{
    int key = key_with(parser, name, K);
    if (key == KEY_COUNT)
        return;
    gpu->rate[key] = number(parser, word(parser));
    gpu->is_rate_set[key] = 1;
}

static void set_value(struct parser *parser, struct gpu *gpu, const char *name)
{
    int key = key_with(parser, name, V);
    if (key == KEY_COUNT)
        return;
    gpu->value[key] = (int64_t)number(parser, word(parser));
    gpu->is_set[key] = 1;
}

static void add_process(struct parser *parser, struct process_list *processes, char *item)
{
    char *mib = strchr(item, ':'), *instance = mib ? strchr(mib + 1, ':') : NULL;
    if (!mib || processes->count == PROCESSES_MAX) {
        complain(parser, "'%s' is not pid:MiB or one process too many", item);
        return;
    }
    *mib++ = 0;
    if (instance)
        *instance++ = 0;
    processes->list[processes->count++] = (struct process){
        .pid = (uint32_t)number(parser, item),
        .instance = instance ? (uint32_t)number(parser, instance) : NOT_AVAILABLE,
        .bytes = *mib == '?' ? VALUE_NOT_AVAILABLE : (uint64_t)number(parser, mib) << 20,
    };
}

static void set_processes(struct parser *parser, struct process_list *processes, const char *text)
{
    char copy[4096], *rest = NULL;
    snprintf(copy, sizeof copy, "%s", text);
    processes->count = 0;
    for (char *item = strtok_r(copy, ",", &rest); item; item = strtok_r(NULL, ",", &rest))
        add_process(parser, processes, item);
}

static int set_named(struct parser *parser, struct gpu *gpu, const char *name)
{
    for (int i = 0; i < PROCESS_KINDS; i++)
        if (!strcmp(name, process_names[i]))
            return set_processes(parser, &gpu->processes[i], word(parser)), 1;
    for (int i = 0; i < TEXT_COUNT; i++)
        if (!strcmp(name, text_names[i])) {
            parser->rest[strcspn(parser->rest, "\n")] = 0;
            snprintf(gpu->text[i], TEXT_SIZE, "%s", parser->rest);
            return 1;
        }
    return 0;
}

static void set_delay(struct parser *parser, struct gpu *gpu)
{
    int key = key_with(parser, word(parser), C);
    if (key < KEY_COUNT)
        gpu->delay_ms[key] = within(parser, word(parser), 0, INT32_MAX);
}

static void set_lost(struct parser *parser, struct gpu *gpu)
{
    const char *flag = word(parser);
    gpu->is_lost = !*flag || within(parser, flag, 0, 1);
}

static void gpu_line(struct parser *parser, struct gpu *gpu)
{
    char name[TEXT_SIZE];
    snprintf(name, sizeof name, "%s", word(parser));
    char *suffix = strlen(name) > 5 ? name + strlen(name) - 5 : name;
    if (!strcmp(name, "lost"))
        set_lost(parser, gpu);
    else if (!strcmp(name, "unsupported"))
        set_error(parser, gpu, word(parser), NVML_NOT_SUPPORTED);
    else if (!strcmp(name, "error")) {
        const char *call = word(parser);
        set_error(parser, gpu, call, error_named(parser, word(parser)));
    } else if (!strcmp(name, "delay"))
        set_delay(parser, gpu);
    else if (!strcmp(name, "delay_ms"))
        gpu->all_delay_ms = within(parser, word(parser), 0, INT32_MAX);
    else if (set_named(parser, gpu, name))
        return;
    else if (lookup(name) == KEY_COUNT && !strcmp(suffix, "_rate")) {
        *suffix = 0;
        set_rate(parser, gpu, name);
    } else
        set_value(parser, gpu, name);
}

/* '*' stands for all of them: the line is parsed anew for each, since parsing eats it. */
static void gpu_lines(struct parser *parser)
{
    char copy[4096], *after;
    const char *which = word(parser);
    int is_all = !strcmp(which, "*");
    int first = is_all ? 0 : within(parser, which, 0, GPUS_MAX - 1);
    int last = is_all ? GPUS_MAX - 1 : first;
    after = parser->rest;
    for (int i = first; i <= last; i++) {
        snprintf(copy, sizeof copy, "%s", after);
        parser->rest = copy;
        gpu_line(parser, &parser->scenario->gpu[i]);
    }
}

static void xid_line(struct parser *parser)
{
    struct scenario *scenario = parser->scenario;
    if (scenario->xid_count == XIDS_MAX) {
        complain(parser, "more than %d Xids", XIDS_MAX);
        return;
    }
    struct xid *xid = &scenario->xids[scenario->xid_count++];
    xid->gpu = (unsigned)within(parser, word(parser), 0, GPUS_MAX - 1);
    xid->code = (unsigned)within(parser, word(parser), 0, INT32_MAX);
    xid->serial = (unsigned)within(parser, word(parser), 0, SERIALS_MAX - 1);
}

static void parse_line(struct parser *parser, const char *key)
{
    struct scenario *scenario = parser->scenario;
    if (!strcmp(key, "gpu"))
        gpu_lines(parser);
    else if (!strcmp(key, "xid"))
        xid_line(parser);
    else if (!strcmp(key, "gpus"))
        scenario->gpus = within(parser, word(parser), 0, GPUS_MAX);
    else if (!strcmp(key, "driver"))
        snprintf(scenario->driver, TEXT_SIZE, "%s", word(parser));
    else if (!strcmp(key, "nvml"))
        snprintf(scenario->nvml_version, TEXT_SIZE, "%s", word(parser));
    else if (!strcmp(key, "cuda"))
        scenario->cuda = within(parser, word(parser), 0, INT32_MAX);
    else if (!strcmp(key, "reload"))
        scenario->reload = (unsigned)within(parser, word(parser), 0, INT32_MAX);
    else if (!strcmp(key, "init"))
        scenario->init = error_named(parser, word(parser));
    else if (!strcmp(key, "init_delay_ms"))
        scenario->init_delay_ms = within(parser, word(parser), 0, INT32_MAX);
    else if (!strcmp(key, "event_wait"))
        scenario->event_wait = error_named(parser, word(parser));
    else
        complain(parser, "unknown word '%s'", key);
}

void scenario_parse(struct scenario *scenario, FILE *file)
{
    struct parser parser = {.scenario = scenario};
    char line[4096];
    defaults(scenario);
    while (file && fgets(line, sizeof line, file)) {
        const char *key = strtok_r(line, " \t\n", &parser.rest);
        parser.line++;
        if (key && *key != '#')
            parse_line(&parser, key);
    }
}
