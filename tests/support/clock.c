/* A wall clock that a test sets.
 *
 * Preloaded into a server. The file that RL_TEST_CLOCK names holds one little-endian 64-bit integer, mapped and read at each call: the time
 * in microseconds since the Unix epoch; 0 leaves the real time. Only the wall clock is replaced. The monotonic clock goes on, and with it the
 * server's event loop and timers.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *shared_time;

__attribute__((constructor)) static void map_shared_time(void) {
    const char *path = getenv("RL_TEST_CLOCK");
    if (!path) return;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    void *mapped = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (mapped != MAP_FAILED) shared_time = mapped;
}

int clock_gettime(clockid_t clock, struct timespec *out) {
    int wall = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
    int64_t micros = wall && shared_time ? *shared_time : 0;
    if (micros == 0) return (int)syscall(SYS_clock_gettime, clock, out);
    out->tv_sec = micros / 1000000;
    out->tv_nsec = micros % 1000000 * 1000;
    return 0;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone) {
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    out->tv_sec = now.tv_sec;
    out->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *out) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out) *out = now.tv_sec;
    return now.tv_sec;
}

/* Valkey 9 reads the wall clock once a millisecond, and in between adds what the processor's counter has run on, if /proc/cpuinfo says that
 * the counter is steady. It must not learn that, or its time would run on by up to a millisecond while this clock stands. */
FILE *fopen(const char *restrict path, const char *restrict mode) {
    FILE *(*next)(const char *, const char *);
    if (shared_time && strcmp(path, "/proc/cpuinfo") == 0) return NULL;
    *(void **)&next = dlsym(RTLD_NEXT, "fopen");
    return next(path, mode);
}

FILE *fopen64(const char *restrict path, const char *restrict mode) {
    return fopen(path, mode);
}
