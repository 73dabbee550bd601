/* Records what a process does to the files of one folder: LD_PRELOAD it with POWER_ROOT and POWER_TRACE set.
 *
 * Each record is one write to the trace, which is opened with O_APPEND: records of all threads and processes are in the
 * order in which the calls returned. A sync has a record before the call and one after it. What a process wrote through
 * a shared mapping is recorded when it is synced, as writes. trace.py reads the records.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#define FDS 65536
#define MAPS 4096
#define PAGE 4096
#define SHADOW (64L << 20)

struct header {
    uint32_t length; /* of the whole record */
    uint32_t op;
    uint64_t inode, offset, size;
    uint32_t first, second; /* lengths of the two texts that follow: paths, or data and nothing */
};

static struct mapping {
    char *address;
    size_t length;
    uint64_t inode;
    off_t offset;
    char path[256];
} maps[MAPS];

static const char *root;
static size_t root_length;
static int trace = -1;
static unsigned char watched[FDS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

#define REAL(type, name, ...)                                                                                          \
    static type (*real)(__VA_ARGS__);                                                                                  \
    if (!real) real = (type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

static void send_named_calls(void);

__attribute__((constructor)) static void begin(void) {
    char *path = getenv("POWER_TRACE");
    root = getenv("POWER_ROOT");
    if (!path || !root) return;
    root_length = strlen(root);
    int fd = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0) {
        trace = syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 1000);
        syscall(SYS_close, fd);
        send_named_calls();
    }
}

static void record(char op, uint64_t inode, uint64_t offset, uint64_t size, const void *first, size_t first_length,
                   const void *second, size_t second_length) {
    if (trace < 0) return;
    int saved = errno;
    struct header header = {sizeof header + first_length + second_length, op, inode, offset, size, first_length,
                            second_length};
    struct iovec parts[3] = {
        {&header, sizeof header}, {(void *)first, first_length}, {(void *)second, second_length}};
    if (syscall(SYS_writev, trace, parts, 3) != (long)header.length) abort();
    errno = saved;
}

static int within(const char *path) {
    return root && !strncmp(path, root, root_length) && (path[root_length] == '/' || !path[root_length]);
}

static const char *absolute(int folder, const char *path, char *buffer) {
    if (path[0] == '/') return path;
    char link[64];
    ssize_t length;
    if (folder == AT_FDCWD) {
        if (syscall(SYS_getcwd, buffer, PATH_MAX) < 0) return path;
        length = strlen(buffer);
    } else {
        snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
        length = syscall(SYS_readlinkat, AT_FDCWD, link, buffer, PATH_MAX - 1);
        if (length < 0) return path;
    }
    snprintf(buffer + length, PATH_MAX - length, "/%s", path);
    return buffer;
}

static uint64_t inode_of(int fd) {
    struct stat found;
    return fstat(fd, &found) ? 0 : found.st_ino;
}

static int is_watched(int fd) {
    struct stat found;
    return fd >= 0 && fd < FDS && watched[fd] && !fstat(fd, &found) && (S_ISREG(found.st_mode) || S_ISDIR(found.st_mode));
}

static struct shadow {
    uint64_t inode;
    char *data;
} shadows[MAPS];
static int shadow_count;

/* What was last recorded of a file that is mapped; NULL if it never was mapped. */
static char *shadow_of(uint64_t inode) {
    for (int n = 0; n < shadow_count; n++)
        if (shadows[n].inode == inode) return shadows[n].data;
    return NULL;
}

/* Record a page of a mapped file, if it has changed since it was recorded last. */
static void contents(uint64_t inode, const char *data, size_t length, off_t at) {
    char *shadow = shadow_of(inode);
    if (at + length <= SHADOW) {
        if (!memcmp(shadow + at, data, length)) return;
        memcpy(shadow + at, data, length);
    }
    record('w', inode, at, length, data, length, NULL, 0);
}

/* What is in a file that was mapped, whoever wrote it, without the holes in it. */
static void observe(int fd, uint64_t inode) {
    if (!shadow_of(inode)) return;
    char *page = malloc(PAGE);
    off_t at = 0, end;
    while (page && (at = syscall(SYS_lseek, fd, at, SEEK_DATA)) >= 0) {
        end = syscall(SYS_lseek, fd, at, SEEK_HOLE);
        for (at -= at % PAGE; at < end; at += PAGE) {
            ssize_t got = syscall(SYS_pread64, fd, page, PAGE, at);
            if (got > 0) contents(inode, page, got, at);
        }
    }
    free(page);
}

static void observe_mapping(const struct mapping *found) {
    int saved = errno, fd = syscall(SYS_openat, AT_FDCWD, found->path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && inode_of(fd) == found->inode)
        observe(fd, found->inode);
    else /* it was renamed */
        for (size_t at = 0; at < found->length; at += PAGE)
            contents(found->inode, found->address + at, found->length - at < PAGE ? found->length - at : PAGE,
                     found->offset + at);
    if (fd >= 0) syscall(SYS_close, fd);
    errno = saved;
}

/* What was written through mappings so far, and may reach the disk without a sync. */
static void observe_all(void) {
    pthread_mutex_lock(&lock);
    for (int n = 0; n < MAPS; n++)
        if (maps[n].address) observe_mapping(&maps[n]);
    pthread_mutex_unlock(&lock);
}

static void opened(int fd, int folder, const char *path, int flags) {
    char buffer[PATH_MAX];
    if (fd < 0 || fd >= FDS) return;
    path = absolute(folder, path, buffer);
    watched[fd] = within(path) && (flags & O_TMPFILE) != O_TMPFILE; /* such a file has no name */
    if (watched[fd] && (flags & (O_CREAT | O_TRUNC)))
        record('o', inode_of(fd), 0, flags & O_TRUNC ? 1 : 0, path, strlen(path), NULL, 0);
}

#define OPEN(name, folder, ...)                                                                                        \
    mode_t mode = 0;                                                                                                   \
    if (flags & (O_CREAT | O_TMPFILE)) {                                                                               \
        va_list rest;                                                                                                  \
        va_start(rest, flags);                                                                                         \
        mode = va_arg(rest, mode_t);                                                                                   \
        va_end(rest);                                                                                                  \
    }                                                                                                                  \
    int fd = syscall(SYS_openat, folder, path, flags | O_LARGEFILE, mode);                                             \
    opened(fd, folder, path, flags);                                                                                   \
    return fd

int open(const char *path, int flags, ...) { OPEN("open", AT_FDCWD); }
int open64(const char *path, int flags, ...) { OPEN("open64", AT_FDCWD); }
int openat(int folder, const char *path, int flags, ...) { OPEN("openat", folder); }
int openat64(int folder, const char *path, int flags, ...) { OPEN("openat64", folder); }

int close(int fd) {
    if (fd >= 0 && fd < FDS) watched[fd] = 0;
    if (fd == trace) return 0;
    REAL(int, "close", int);
    return real(fd);
}

ssize_t write(int fd, const void *data, size_t length) {
    ssize_t done = syscall(SYS_write, fd, data, length);
    if (done > 0 && fd == 1) {
        observe_all();
        record('a', 0, 0, 0, data, done, NULL, 0);
    } else if (done > 0 && is_watched(fd))
        record('w', inode_of(fd), syscall(SYS_lseek, fd, 0, SEEK_CUR) - done, done, data, done, NULL, 0);
    return done;
}

static ssize_t written_at(int fd, const void *data, off_t offset, ssize_t done) {
    if (done > 0 && is_watched(fd)) record('w', inode_of(fd), offset, done, data, done, NULL, 0);
    return done;
}

ssize_t pwrite(int fd, const void *data, size_t length, off_t offset) {
    return written_at(fd, data, offset, syscall(SYS_pwrite64, fd, data, length, offset));
}

ssize_t pwrite64(int fd, const void *data, size_t length, off_t offset) {
    return written_at(fd, data, offset, syscall(SYS_pwrite64, fd, data, length, offset));
}

static void parts_written(int fd, const struct iovec *parts, int count, off_t offset, ssize_t done) {
    if (done <= 0 || !is_watched(fd)) return;
    uint64_t inode = inode_of(fd);
    for (int n = 0; n < count && done > 0; n++) {
        size_t length = (size_t)done < parts[n].iov_len ? (size_t)done : parts[n].iov_len;
        record('w', inode, offset, length, parts[n].iov_base, length, NULL, 0);
        offset += length;
        done -= length;
    }
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    ssize_t done = syscall(SYS_writev, fd, parts, count);
    if (done > 0 && is_watched(fd)) parts_written(fd, parts, count, syscall(SYS_lseek, fd, 0, SEEK_CUR) - done, done);
    return done;
}

#define SYNC(name, number)                                                                                             \
    int name(int fd) {                                                                                                 \
        if (!is_watched(fd)) return syscall(number, fd);                                                               \
        uint64_t inode = inode_of(fd);                                                                                 \
        observe(fd, inode);                                                                                            \
        uint64_t call = (uint64_t)syscall(SYS_gettid) << 32 | inode;                                                   \
        record('b', inode, 0, call, NULL, 0, NULL, 0);                                                                 \
        int failed = syscall(number, fd);                                                                              \
        if (!failed) record('e', inode, 0, call, NULL, 0, NULL, 0);                                                    \
        return failed;                                                                                                 \
    }
SYNC(fsync, SYS_fsync)
SYNC(fdatasync, SYS_fdatasync)

static void *map(void *address, size_t length, int protection, int flags, int fd, off_t offset) {
    void *found = (void *)syscall(SYS_mmap, address, length, protection, flags, fd, offset);
    if (found == MAP_FAILED || !(flags & MAP_SHARED) || !(protection & PROT_WRITE) || !is_watched(fd)) return found;
    uint64_t inode = inode_of(fd);
    pthread_mutex_lock(&lock);
    if (!shadow_of(inode) && shadow_count < MAPS) {
        long shadow = syscall(SYS_mmap, NULL, (long)SHADOW, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0L);
        shadows[shadow_count++] = (struct shadow){inode, (char *)shadow};
    }
    for (int n = 0; n < MAPS; n++)
        if (!maps[n].address) {
            char link[64];
            maps[n] = (struct mapping){found, length, inode, offset, ""};
            snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
            syscall(SYS_readlinkat, AT_FDCWD, link, maps[n].path, sizeof maps[n].path - 1);
            break;
        }
    pthread_mutex_unlock(&lock);
    return found;
}

void *mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset) {
    return map(address, length, protection, flags, fd, offset);
}

void *mmap64(void *address, size_t length, int protection, int flags, int fd, off64_t offset) {
    return map(address, length, protection, flags, fd, offset);
}

int munmap(void *address, size_t length) {
    pthread_mutex_lock(&lock);
    for (int n = 0; n < MAPS; n++)
        if (maps[n].address == address) {
            observe_mapping(&maps[n]);
            maps[n].address = NULL;
        }
    pthread_mutex_unlock(&lock);
    return syscall(SYS_munmap, address, length);
}

int msync(void *address, size_t length, int flags) {
    struct mapping found = {0};
    pthread_mutex_lock(&lock);
    for (int n = 0; n < MAPS; n++)
        if (maps[n].address && maps[n].address <= (char *)address &&
            (char *)address < maps[n].address + maps[n].length)
            found = maps[n];
    pthread_mutex_unlock(&lock);
    if (!found.address || !(flags & MS_SYNC)) return syscall(SYS_msync, address, length, flags);
    off_t at = found.offset + ((char *)address - found.address);
    observe_mapping(&found);
    uint64_t call = (uint64_t)syscall(SYS_gettid) << 32 | found.inode;
    record('b', found.inode, at, call, NULL, 0, NULL, 0);
    int failed = syscall(SYS_msync, address, length, flags);
    if (!failed) record('e', found.inode, at, call, NULL, 0, NULL, 0);
    return failed;
}

#define OURS 0x52634c67
/* A call of this file: its sixth argument, which these calls do not use, says so. */
static long raw(long number, long a, long b, long c, long d, long e) {
    register long r10 asm("r10") = d, r8 asm("r8") = e, r9 asm("r9") = OURS;
    long result;
    asm volatile("syscall"
                 : "=a"(result)
                 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                 : "rcx", "r11", "memory");
    return result;
}

static int named(char op, int failed, int first_folder, const char *first, int second_folder, const char *second) {
    char one[PATH_MAX], other[PATH_MAX];
    if (failed) return failed;
    first = absolute(first_folder, first, one);
    if (second) second = absolute(second_folder, second, other);
    if (!within(first) && !(second && within(second))) return failed;
    struct stat found;
    uint64_t inode = op == 'd' && !lstat(first, &found) ? found.st_ino : 0;
    record(op, inode, 0, 0, first, strlen(first), second, second ? strlen(second) : 0);
    return failed;
}

static void resized(char op, int failed, int fd, off_t size) {
    if (!failed && is_watched(fd)) record(op, inode_of(fd), 0, size, NULL, 0, NULL, 0);
}

/* Names and sizes are changed by raw calls too, which no function of the C library makes: the kernel sends them here (SIGSYS). */
static void named_call(int signal, siginfo_t *info, void *context) {
    long *registers = (long *)((ucontext_t *)context)->uc_mcontext.gregs;
    long a = registers[REG_RDI], b = registers[REG_RSI], c = registers[REG_RDX], d = registers[REG_R10],
         e = registers[REG_R8];
    const int here = AT_FDCWD;
    int saved = errno;
    (void)signal;
#define CALL(op, number, first_folder, first, second_folder, second, ...)                                              \
    registers[REG_RAX] = raw(number, __VA_ARGS__);                                                                     \
    named(op, (int)registers[REG_RAX], first_folder, (const char *)(first), second_folder, (const char *)(second));    \
    break
    switch (info->si_syscall) {
    case SYS_mkdir: CALL('d', SYS_mkdirat, here, a, 0, 0, here, a, b, 0, 0);
    case SYS_mkdirat: CALL('d', SYS_mkdirat, (int)a, b, 0, 0, a, b, c, 0, 0);
    case SYS_unlink: CALL('u', SYS_unlinkat, here, a, 0, 0, here, a, 0, 0, 0);
    case SYS_rmdir: CALL('u', SYS_unlinkat, here, a, 0, 0, here, a, AT_REMOVEDIR, 0, 0);
    case SYS_unlinkat: CALL('u', SYS_unlinkat, (int)a, b, 0, 0, a, b, c, 0, 0);
    case SYS_rename: CALL('r', SYS_renameat2, here, a, here, b, here, a, here, b, 0);
    case SYS_renameat: CALL('r', SYS_renameat2, (int)a, b, (int)c, d, a, b, c, d, 0);
    case SYS_renameat2: CALL('r', SYS_renameat2, (int)a, b, (int)c, d, a, b, c, d, e);
    case SYS_link: CALL('l', SYS_linkat, here, a, here, b, here, a, here, b, 0);
    case SYS_ftruncate:
        registers[REG_RAX] = raw(SYS_ftruncate, a, b, 0, 0, 0);
        resized('t', (int)registers[REG_RAX], (int)a, b);
        break;
    case SYS_fallocate:
        registers[REG_RAX] = raw(SYS_fallocate, a, b, c, d, 0);
        if (!b) resized('f', (int)registers[REG_RAX], (int)a, c + d);
        break;
    case SYS_linkat: CALL('l', SYS_linkat, (int)a, b, (int)c, d, a, b, c, d, e);
    }
    errno = saved;
}

static void send_named_calls(void) {
#define TRAPPED(number) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP)
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[5])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OURS, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        TRAPPED(SYS_mkdir), TRAPPED(SYS_mkdirat), TRAPPED(SYS_unlink), TRAPPED(SYS_rmdir), TRAPPED(SYS_unlinkat),
        TRAPPED(SYS_rename), TRAPPED(SYS_renameat), TRAPPED(SYS_renameat2), TRAPPED(SYS_link), TRAPPED(SYS_linkat), TRAPPED(SYS_ftruncate), TRAPPED(SYS_fallocate),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof steps / sizeof *steps, steps};
    struct sigaction action = {.sa_sigaction = named_call, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction(SIGSYS, &action, NULL);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) abort();
}
