/*
 * LIST and REMOVE: a walk of any depth with one folder open at a time. Going up is by "..", and it is
 * checked to be the folder that was left.
 */
#define _GNU_SOURCE
#include "files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct level {
    dev_t device;
    ino_t inode;
    char *folders; /* names, each with its NUL, that are still to be entered */
    size_t size, at;
    size_t path_size; /* of the path up to here */
};

struct walk {
    struct work *work;
    int dir;
    struct level *levels;
    size_t depth, room;
    char *path; /* relative to where it began, without a NUL */
    size_t path_size, path_room;
    int is_removing;
};

static int grow(void *pointer, size_t *room, size_t wanted, size_t unit)
{
    void **at = pointer;
    if (wanted <= *room)
        return 0;
    size_t size = wanted * 2;
    void *grown = realloc(*at, size * unit);
    if (!grown)
        return -ENOMEM;
    *at = grown;
    *room = size;
    return 0;
}

static int set_name(struct walk *walk, size_t prefix, const char *name)
{
    size_t size = strlen(name);
    int rc = grow(&walk->path, &walk->path_room, prefix + size + 1, 1);
    if (rc < 0)
        return rc;
    if (prefix)
        walk->path[prefix++] = '/';
    memcpy(walk->path + prefix, name, size);
    walk->path_size = prefix + size;
    return 0;
}

static int add_folder(struct level *level, size_t *room, const char *name)
{
    size_t size = strlen(name) + 1;
    int rc = grow(&level->folders, room, level->size + size, 1);
    if (rc < 0)
        return rc;
    memcpy(level->folders + level->size, name, size);
    level->size += size;
    return 0;
}

/* Returns 1 for a folder that is to be entered. */
static int visit(struct walk *walk, const struct level *level, const char *name)
{
    struct stat stat;
    if (fstatat(walk->dir, name, &stat, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno; /* gone meanwhile */
    if (walk->is_removing) {
        if (S_ISDIR(stat.st_mode))
            return 1;
        return unlinkat(walk->dir, name, 0) < 0 && errno != ENOENT ? -errno : 0;
    }
    int rc = set_name(walk, level->path_size, name);
    if (rc < 0)
        return rc;
    if (walk->path_size > MAX_PAYLOAD / 2)
        return -ENAMETOOLONG;
    send_entry(walk->work, walk->dir, name, &stat, (struct octets){(uint8_t *)walk->path, (uint32_t)walk->path_size});
    return S_ISDIR(stat.st_mode) && walk->depth < walk->work->request->depth;
}

static int visit_all(struct walk *walk, struct level *level)
{
    int copy = openat(walk->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = copy < 0 ? NULL : fdopendir(copy);
    size_t room = 0;
    int rc = 0;
    if (!dir)
        return -errno;
    for (struct dirent *entry; rc >= 0 && (entry = readdir(dir));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        rc = visit(walk, level, entry->d_name);
        if (rc == 1)
            rc = add_folder(level, &room, entry->d_name);
    }
    closedir(dir);
    return rc < 0 ? rc : 0;
}

/* A folder of one's own that can't be read can still be removed, once it may be read. */
static int open_folder(struct walk *walk, int at, const char *name)
{
    int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | (walk->depth || walk->is_removing ? O_NOFOLLOW : 0);
    int fd = openat(at, name, flags);
    if (fd < 0 && errno == EACCES && walk->is_removing && fchmodat(at, name, 0700, 0) == 0)
        fd = openat(at, name, flags);
    return fd < 0 ? -errno : fd;
}

/* Enters `name`, and visits what is in it. */
static int enter(struct walk *walk, const char *name)
{
    struct stat stat;
    int fd = open_folder(walk, walk->depth ? walk->dir : AT_FDCWD, name);
    if (fd < 0)
        return fd;
    if (fstat(fd, &stat) < 0 || grow(&walk->levels, &walk->room, walk->depth + 1, sizeof *walk->levels) < 0) {
        close(fd);
        return -ENOMEM;
    }
    if (walk->is_removing)
        fchmod(fd, (stat.st_mode & 07777) | 0700);
    if (walk->depth)
        close(walk->dir);
    walk->dir = fd;
    struct level *level = &walk->levels[walk->depth++];
    *level = (struct level){.device = stat.st_dev, .inode = stat.st_ino, .path_size = walk->path_size};
    return visit_all(walk, level);
}

/* Leaves the innermost folder for the one that it was entered from. */
static int leave(struct walk *walk)
{
    struct stat stat;
    free(walk->levels[--walk->depth].folders);
    if (!walk->depth)
        return 0;
    const struct level *level = &walk->levels[walk->depth - 1];
    int fd = openat(walk->dir, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    close(walk->dir);
    walk->dir = fd;
    if (fstat(fd, &stat) < 0)
        return -errno;
    return stat.st_dev == level->device && stat.st_ino == level->inode ? 0 : -ESTALE;
}

/* A folder that can't be entered is listed, and what is in it is left out. */
static int is_skipped(const struct walk *walk, int rc)
{
    return !walk->is_removing && (rc == -EACCES || rc == -ENOENT || rc == -ENOTDIR || rc == -ELOOP);
}

static int walk_on(struct walk *walk)
{
    while (walk->depth) {
        struct level *level = &walk->levels[walk->depth - 1];
        size_t depth = walk->depth;
        int rc = 0;
        if (level->at < level->size) {
            const char *name = level->folders + level->at;
            if (!walk->is_removing)
                level->at += strlen(name) + 1;
            rc = set_name(walk, level->path_size, name);
            if (rc == 0)
                rc = enter(walk, name);
            if (walk->depth == depth && is_skipped(walk, rc))
                rc = 0;
        } else {
            rc = leave(walk);
            if (rc == 0 && walk->is_removing && walk->depth) {
                level = &walk->levels[walk->depth - 1];
                const char *name = level->folders + level->at;
                rc = unlinkat(walk->dir, name, AT_REMOVEDIR) < 0 && errno != ENOENT ? -errno : 0;
                level->at += strlen(name) + 1;
            }
        }
        if (rc < 0)
            return rc;
    }
    return 0;
}

int walk_list(struct work *work)
{
    struct walk walk = {.work = work};
    if (work->request->depth == 0)
        return -EINVAL;
    int rc = enter(&walk, work->request->path);
    if (rc == 0)
        rc = walk_on(&walk);
    if (rc == 0)
        work_send_end(work);
    return rc;
}

/* A slash at the end would make the kernel follow a link. */
static void strip_slashes(char *path)
{
    size_t size = strlen(path);
    while (size > 1 && path[size - 1] == '/')
        path[--size] = 0;
}

int walk_remove(struct work *work)
{
    char *path = work->request->path;
    struct walk walk = {.work = work, .is_removing = 1};
    struct stat stat;
    strip_slashes(path);
    if (fstatat(AT_FDCWD, path, &stat, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    int is_folder = S_ISDIR(stat.st_mode);
    if (is_folder && strcmp(path, "/") == 0)
        return -EBUSY;
    if (is_folder && work->request->flags & REMOVE_RECURSIVE) {
        int rc = enter(&walk, path);
        if (rc == 0)
            rc = walk_on(&walk);
        if (rc < 0)
            return rc;
    }
    if (unlinkat(AT_FDCWD, path, is_folder ? AT_REMOVEDIR : 0) < 0)
        return -errno;
    work_send_ok(work, 0);
    return 0;
}
