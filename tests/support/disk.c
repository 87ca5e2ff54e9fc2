/* A disk that may lose its power.
 *
 * Preloaded into a server. Whenever a file has reached the disk, a record is appended to the file that RL_TEST_DISK
 * names: three 64-bit integers, which file it is (inode, and nanosecond of birth, for inodes are used again) and how
 * long it was when the call began. Each call takes RL_TEST_DISK_DELAY milliseconds longer.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int journal = -1;
static useconds_t delay;

__attribute__((constructor)) static void open_journal(void) {
    const char *path = getenv("RL_TEST_DISK"), *millis = getenv("RL_TEST_DISK_DELAY");
    if (path) journal = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (millis) delay = (useconds_t)atoi(millis) * 1000;
}

static int sync_by(const char *name, int file) {
    int (*next)(int);
    struct statx told;
    int known = statx(file, "", AT_EMPTY_PATH, STATX_INO | STATX_SIZE | STATX_BTIME, &told) == 0;
    *(void **)&next = dlsym(RTLD_NEXT, name);
    usleep(delay);
    int failed = next(file);
    if (!failed && known && S_ISREG(told.stx_mode) && journal >= 0) {
        int64_t birth = told.stx_btime.tv_sec * 1000000000 + told.stx_btime.tv_nsec;
        int64_t record[] = {(int64_t)told.stx_ino, birth, (int64_t)told.stx_size};
        if (write(journal, record, sizeof record) != sizeof record) abort();
    }
    return failed;
}

int fsync(int file) { return sync_by("fsync", file); }

int fdatasync(int file) { return sync_by("fdatasync", file); }
