/* Each write to a file under SLOW_PREFIX takes SLOW_MILLISECONDS more, while the file SLOW_SWITCH is there. */
#define _GNU_SOURCE
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int is_slow(int file) {
    const char *prefix = getenv("SLOW_PREFIX"), *given = getenv("SLOW_SWITCH");
    char link[64], path[PATH_MAX];
    if (!prefix || !given || access(given, F_OK))
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path);
    return length > 0 && !strncmp(path, prefix, strlen(prefix));
}

ssize_t write(int file, const void *content, size_t length) {
    if (is_slow(file))
        usleep(1000 * (useconds_t)atoi(getenv("SLOW_MILLISECONDS")));
    return syscall(SYS_write, file, content, length);
}
