/* LD_PRELOAD: Python's clock of the day is SKEW_SECONDS off; other libraries wait by the true one. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int of_python(const void *caller) {
    Dl_info found;
    if (!dladdr(caller, &found) || !found.dli_fname) return 0;
    const char *slash = strrchr(found.dli_fname, '/');
    const char *name = slash ? slash + 1 : found.dli_fname;
    return !strncmp(name, "python", 6) || !strncmp(name, "libpython", 9);
}

int clock_gettime(clockid_t which, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int failed = real(which, now);
    const char *skew = getenv("SKEW_SECONDS");
    if (!failed && skew && which == CLOCK_REALTIME && of_python(__builtin_return_address(0)))
        now->tv_sec += atol(skew);
    return failed;
}
