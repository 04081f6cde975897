/* A clock that jumps: loaded before the C library, it adds CLOCK_JUMP seconds to the time of day, from CLOCK_JUMP_AFTER
   seconds after the first look at it. The monotonic clock stays as it is. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static int (*real)(clockid_t, struct timespec *);
static struct timespec first;

static long jump(void)
{
    struct timespec now;
    const char *seconds = getenv("CLOCK_JUMP"), *after = getenv("CLOCK_JUMP_AFTER");
    if (!real) {
        real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
        real(CLOCK_MONOTONIC, &first);
    }
    real(CLOCK_MONOTONIC, &now);
    return seconds && now.tv_sec - first.tv_sec >= (after ? atol(after) : 0) ? atol(seconds) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *found)
{
    long added = jump();
    int failed = real(clock, found);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        found->tv_sec += added;
    return failed;
}

int gettimeofday(struct timeval *found, void *zone)
{
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    found->tv_sec = now.tv_sec;
    found->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *found)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (found)
        *found = now.tv_sec;
    return now.tv_sec;
}
