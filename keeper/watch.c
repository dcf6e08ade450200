/* WATCH: what changes in a folder, and below it. */
#define _GNU_SOURCE
#include "worker.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

enum { MADE = 1, WRITTEN, REMOVED, MOVED_AWAY, MOVED_HERE, ATTRIBUTES, LOST };

static const uint32_t CHANGES = IN_CREATE | IN_MODIFY | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ATTRIB |
                                IN_DELETE_SELF | IN_ONLYDIR;

struct folder {
    int descriptor;
    char *name; /* relative to the one watched; empty for itself */
};

struct watcher {
    struct work *work;
    int inotify;
    struct folder *folders;
    size_t count, room;
};

static void report(struct watcher *watcher, int kind, const char *name)
{
    struct frame event = {.type = EVENT, .kind = (uint8_t)kind};
    event.name = (struct octets){(const uint8_t *)name, (uint32_t)strlen(name)};
    work_send(watcher->work, &event);
}

static struct folder *find(struct watcher *watcher, int descriptor)
{
    for (size_t i = 0; i < watcher->count; i++)
        if (watcher->folders[i].descriptor == descriptor)
            return &watcher->folders[i];
    return NULL;
}

static int remember(struct watcher *watcher, int descriptor, char *name)
{
    struct folder *known = find(watcher, descriptor);
    if (known) {
        free(known->name);
        known->name = name;
        return 0;
    }
    if (watcher->count == watcher->room) {
        size_t room = watcher->room ? watcher->room * 2 : 16;
        struct folder *grown = realloc(watcher->folders, room * sizeof *grown);
        if (!grown)
            return -ENOMEM;
        watcher->folders = grown;
        watcher->room = room;
    }
    watcher->folders[watcher->count++] = (struct folder){descriptor, name};
    return 0;
}

static void forget(struct watcher *watcher, struct folder *folder)
{
    free(folder->name);
    *folder = watcher->folders[--watcher->count];
}

static char *join(const char *folder, const char *name)
{
    char *path;
    if (!*folder)
        return strdup(name);
    if (!*name)
        return strdup(folder);
    return asprintf(&path, "%s/%s", folder, name) < 0 ? NULL : path;
}

/*
 * Watches `name` and all below it. What is found is reported where the folder itself came to be while we
 * watched: it was made before there was a watch on it. The list of what to do stands in for recursion.
 */
static int add_tree(struct watcher *watcher, const char *name, int is_reported)
{
    size_t first = watcher->count;
    int descriptor = inotify_add_watch(watcher->inotify, *name ? name : ".", CHANGES | IN_DONT_FOLLOW);
    if (descriptor < 0 || remember(watcher, descriptor, strdup(name)) < 0)
        return -errno;
    if (!(watcher->work->request->flags & WATCH_RECURSIVE))
        return 0;
    for (size_t i = first; i < watcher->count; i++) {
        const char *folder = watcher->folders[i].name;
        DIR *dir = folder ? opendir(*folder ? folder : ".") : NULL;
        if (!dir)
            continue;
        for (struct dirent *entry; (entry = readdir(dir));) {
            if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
                continue;
            char *path = join(watcher->folders[i].name, entry->d_name);
            if (!path)
                continue;
            if (is_reported)
                report(watcher, MADE, path);
            int below = entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN
                            ? inotify_add_watch(watcher->inotify, path, CHANGES | IN_DONT_FOLLOW)
                            : -1;
            if (below < 0 || find(watcher, below) || remember(watcher, below, path) < 0)
                free(path);
            if (below < 0 && entry->d_type == DT_DIR && errno != ENOENT && errno != EACCES)
                report(watcher, LOST, "");
        }
        closedir(dir);
    }
    return 0;
}

/* What was moved away is watched no more. */
static void drop_tree(struct watcher *watcher, const char *name)
{
    size_t size = strlen(name);
    for (size_t i = 0; i < watcher->count;) {
        struct folder *folder = &watcher->folders[i];
        if (strncmp(folder->name, name, size) || (folder->name[size] && folder->name[size] != '/')) {
            i++;
            continue;
        }
        inotify_rm_watch(watcher->inotify, folder->descriptor);
        forget(watcher, folder);
    }
}

static int kind_of(uint32_t mask)
{
    return mask & IN_CREATE       ? MADE
           : mask & IN_MODIFY     ? WRITTEN
           : mask & IN_DELETE     ? REMOVED
           : mask & IN_MOVED_FROM ? MOVED_AWAY
           : mask & IN_MOVED_TO   ? MOVED_HERE
                                  : ATTRIBUTES;
}

static void handle_change(struct watcher *watcher, const struct inotify_event *event, const char *path)
{
    report(watcher, kind_of(event->mask), path);
    if (!(event->mask & IN_ISDIR) || !(watcher->work->request->flags & WATCH_RECURSIVE))
        return;
    if (event->mask & (IN_CREATE | IN_MOVED_TO) && add_tree(watcher, path, 1) < 0 && errno != ENOENT && errno != EACCES)
        report(watcher, LOST, "");
    if (event->mask & IN_MOVED_FROM)
        drop_tree(watcher, path);
}

static void handle(struct watcher *watcher, const struct inotify_event *event)
{
    struct folder *folder = find(watcher, event->wd);
    if (event->mask & IN_Q_OVERFLOW)
        report(watcher, LOST, "");
    if (!folder)
        return;
    if (event->mask & IN_IGNORED) {
        forget(watcher, folder);
        return;
    }
    if (event->mask & IN_DELETE_SELF) {
        if (!*folder->name)
            report(watcher, REMOVED, "");
        return;
    }
    if (!event->len && *folder->name)
        return; /* said of a folder: its parent has told it already */
    char *path = join(folder->name, event->len ? event->name : "");
    if (path)
        handle_change(watcher, event, path);
    free(path);
}

int watch(struct work *work)
{
    static char events[64 << 10] __attribute__((aligned(8)));
    struct watcher watcher = {.work = work, .inotify = inotify_init1(IN_CLOEXEC)};
    if (watcher.inotify < 0 || chdir(work->request->path) < 0)
        return -errno;
    int rc = add_tree(&watcher, "", 0);
    if (rc < 0)
        return rc;
    work_send_ok(work, 0);
    for (;;) {
        work_flush(work);
        ssize_t n = read(watcher.inotify, events, sizeof events);
        if (n < 0 && errno != EINTR)
            return -errno;
        for (char *at = events; n > 0 && at < events + n;) {
            const struct inotify_event *event = (const struct inotify_event *)(const void *)at;
            handle(&watcher, event);
            at += sizeof *event + event->len;
        }
    }
}
