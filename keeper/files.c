/* READ, WRITE, STAT, MAKE and MOVE, in a worker that is the user already. */
#define _GNU_SOURCE
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK = 256 << 10 };

static uint8_t buffer[HEADER_SIZE + CHUNK];

char entry_kind(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFDIR:
        return 'd';
    case S_IFLNK:
        return 'l';
    case S_IFIFO:
        return 'p';
    case S_IFSOCK:
        return 's';
    case S_IFCHR:
        return 'c';
    case S_IFBLK:
        return 'b';
    default:
        return 'f';
    }
}

void send_entry(struct work *work, int dir, const char *file, const struct stat *stat, struct octets name)
{
    static char target[65536];
    struct frame entry = {
        .type = ENTRY,
        .kind = (uint8_t)entry_kind(stat->st_mode),
        .mode = stat->st_mode,
        .uid = stat->st_uid,
        .gid = stat->st_gid,
        .size = (uint64_t)stat->st_size,
        .mtime_ns = (int64_t)stat->st_mtim.tv_sec * 1000000000 + stat->st_mtim.tv_nsec,
        .inode = stat->st_ino,
        .links = (uint32_t)stat->st_nlink,
        .name = name,
    };
    ssize_t n = S_ISLNK(stat->st_mode) ? readlinkat(dir, file, target, sizeof target) : 0;
    if (n > 0)
        entry.link = (struct octets){(const uint8_t *)target, (uint32_t)n};
    work_send(work, &entry);
}

/* Anything but a regular file is refused before it is read or emptied. */
static int check_regular(int fd)
{
    struct stat stat;
    if (fstat(fd, &stat) < 0)
        return -errno;
    if (S_ISDIR(stat.st_mode))
        return -EISDIR;
    return S_ISREG(stat.st_mode) ? 0 : -EINVAL;
}

/* A FIFO or device must neither be waited for nor become the terminal; ENXIO is a FIFO's or socket's. */
static int open_regular(const char *path, int flags, mode_t mode)
{
    int fd = open(path, flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, mode);
    if (fd < 0)
        return errno == ENXIO ? -EINVAL : -errno;
    int rc = check_regular(fd);
    if (rc == 0)
        return fd;
    close(fd);
    return rc;
}

int files_read(struct work *work)
{
    const struct frame *request = work->request;
    uint64_t left = request->limit ? request->limit : UINT64_MAX;
    int fd = open_regular(request->path, O_RDONLY, 0);
    if (fd < 0)
        return fd;
    if (request->offset > INT64_MAX)
        return -EINVAL;
    if (request->offset && lseek(fd, (off_t)request->offset, SEEK_SET) < 0)
        return -errno;
    while (left) {
        ssize_t n = read(fd, buffer + HEADER_SIZE, left < CHUNK ? (size_t)left : CHUNK);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        put_header(buffer, DATA, (uint32_t)n);
        work_send_raw(work, buffer, HEADER_SIZE + (size_t)n);
        left -= (uint64_t)n;
    }
    work_send_end(work);
    return 0;
}

/* Makes the folders above the last part of `path`. */
static int make_parents(char *path)
{
    char *end = path + strlen(path);
    while (end > path && end[-1] == '/')
        end--;
    while (end > path && end[-1] != '/')
        end--;
    for (char *at = path; at < end; at++) {
        if (*at != '/' || at == path || at[-1] == '/')
            continue;
        *at = 0;
        int rc = mkdir(path, 0755) < 0 && errno != EEXIST ? -errno : 0;
        *at = '/';
        if (rc < 0 && rc != -EACCES && rc != -EROFS)
            return rc; /* those two are also said of what exists: then the next step tells */
    }
    return 0;
}

static int write_all(int fd, const uint8_t *data, size_t size)
{
    while (size) {
        ssize_t n = write(fd, data, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        data += n;
        size -= (size_t)n;
    }
    return 0;
}

/* 1: a whole one, 0: the connection ended. */
static int receive_header(struct work *work, uint8_t *header)
{
    for (size_t have = 0; have < HEADER_SIZE;) {
        size_t n = work_receive(work, header + have, HEADER_SIZE - have);
        if (n == 0)
            return 0;
        have += n;
    }
    return 1;
}

/* Takes DATA up to END; with `fd` -1 it is thrown away. A connection that ends before is not answered. */
static int receive_file(struct work *work, int fd, uint64_t *written)
{
    uint8_t header[HEADER_SIZE];
    while (receive_header(work, header)) {
        size_t left = get_u32(header);
        if (header[4] == END && left == 0)
            return 0;
        if (header[4] != DATA || left > MAX_PAYLOAD)
            return -EBADMSG;
        while (left) {
            size_t n = work_receive(work, buffer, left < sizeof buffer ? left : sizeof buffer);
            if (n == 0)
                _exit(0);
            int rc = fd < 0 ? 0 : write_all(fd, buffer, n);
            if (rc < 0)
                return rc;
            left -= n;
            *written += n;
        }
    }
    _exit(0);
}

/* The client reads the answer behind what it sends: so that goes on being taken. */
static int refuse_file(struct work *work, int code)
{
    struct frame reply = {.type = ERROR, .code = (uint32_t)-code};
    const char *message = strerror(-code);
    reply.message = (struct octets){(const uint8_t *)message, (uint32_t)strlen(message)};
    work_send(work, &reply);
    work_flush(work);
    for (;;)
        if (work_receive(work, buffer, sizeof buffer) == 0)
            _exit(0);
}

static int open_target(struct frame *request)
{
    int flags = O_WRONLY | O_CREAT;
    mode_t mode = request->mode ? request->mode & 07777 : 0644;
    if (request->flags & WRITE_APPEND)
        flags |= O_APPEND;
    if (request->flags & WRITE_EXCLUSIVE)
        flags |= O_EXCL;
    int rc = request->flags & WITH_PARENTS ? make_parents(request->path) : 0;
    int fd = rc < 0 ? rc : open_regular(request->path, flags, mode);
    if (fd < 0 || request->flags & WRITE_APPEND || lseek(fd, 0, SEEK_END) == 0)
        return fd; /* emptying what is empty would be a change that watchers are told of */
    lseek(fd, 0, SEEK_SET);
    if (ftruncate(fd, 0) == 0)
        return fd;
    rc = -errno;
    close(fd);
    return rc;
}

int files_write(struct work *work)
{
    uint64_t written = 0;
    int fd = open_target(work->request);
    if (fd < 0)
        return refuse_file(work, fd);
    int rc = receive_file(work, fd, &written);
    if (rc == 0 && close(fd) < 0)
        rc = -errno;
    if (rc < 0)
        return refuse_file(work, rc);
    work_send_ok(work, written);
    return 0;
}

static struct octets base_name(const char *path)
{
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/')
        end--;
    size_t start = end;
    while (start > 0 && path[start - 1] != '/')
        start--;
    return (struct octets){(const uint8_t *)path + start, (uint32_t)(end - start)};
}

int files_stat(struct work *work)
{
    const struct frame *request = work->request;
    struct stat stat;
    int flags = request->flags & STAT_NOFOLLOW ? AT_SYMLINK_NOFOLLOW : 0;
    if (fstatat(AT_FDCWD, request->path, &stat, flags) < 0)
        return -errno;
    send_entry(work, AT_FDCWD, request->path, &stat, base_name(request->path));
    return 0;
}

static int make_folder(const struct frame *request)
{
    struct stat stat;
    mode_t mode = request->mode ? request->mode & 07777 : 0755;
    if (mkdir(request->path, mode) == 0)
        return mode & 06000 && chmod(request->path, mode) < 0 ? -errno : 0; /* mkdir takes no such bits */
    int rc = -errno;
    if (!(request->flags & WITH_PARENTS) || rc == -ENOENT)
        return rc;
    if (fstatat(AT_FDCWD, request->path, &stat, 0) == 0 && S_ISDIR(stat.st_mode))
        return 0;
    return rc;
}

int files_make(struct work *work)
{
    struct frame *request = work->request;
    int rc = -EINVAL;
    if (request->kind == MAKE_FOLDER || request->kind == MAKE_LINK)
        rc = request->flags & WITH_PARENTS ? make_parents(request->path) : 0;
    if (rc == 0 && request->kind == MAKE_FOLDER)
        rc = make_folder(request);
    else if (rc == 0 && symlink(request->target, request->path) < 0)
        rc = -errno;
    if (rc == 0)
        work_send_ok(work, 0);
    return rc;
}

int files_move(struct work *work)
{
    struct frame *request = work->request;
    int rc = request->flags & WITH_PARENTS ? make_parents(request->destination) : 0;
    if (rc == 0 && rename(request->path, request->destination) < 0)
        rc = -errno;
    if (rc == 0)
        work_send_ok(work, 0);
    return rc;
}
