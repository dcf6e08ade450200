#define _GNU_SOURCE
#include "loop.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

enum { BATCH = 64 };

uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t now_ms(void)
{
    return now_ns() / 1000000u;
}

int loop_open(struct loop *loop)
{
    loop->timers.next = loop->timers.previous = &loop->timers;
    loop->epoll = epoll_create1(EPOLL_CLOEXEC);
    return loop->epoll < 0 ? -errno : 0;
}

int loop_add(struct loop *loop, struct source *source, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = source};
    source->events = events;
    if (epoll_ctl(loop->epoll, EPOLL_CTL_ADD, source->fd, &event) < 0)
        return -errno;
    source->is_listed = 1;
    return 0;
}

void loop_remove(struct loop *loop, struct source *source)
{
    if (source->is_listed)
        epoll_ctl(loop->epoll, EPOLL_CTL_DEL, source->fd, NULL);
    source->is_listed = 0;
}

void loop_change(struct loop *loop, struct source *source, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = source};
    if (!source->is_listed || source->events == events)
        return;
    source->events = events;
    epoll_ctl(loop->epoll, EPOLL_CTL_MOD, source->fd, &event);
}

void loop_listen(struct loop *loop, struct source *source, uint32_t events)
{
    if (source->fd < 0)
        return;
    if (!events)
        loop_remove(loop, source);
    else if (!source->is_listed)
        loop_add(loop, source, events);
    else
        loop_change(loop, source, events);
}

/* A child that was forked meanwhile may hold the same file: closing alone would not take it off epoll's list. */
void loop_close(struct loop *loop, struct source *source)
{
    loop_remove(loop, source);
    if (source->fd >= 0)
        close(source->fd);
    source->fd = -1;
}

void loop_discard(struct loop *loop, struct source *source)
{
    source->next_dead = loop->dead;
    loop->dead = source;
}

void timer_set(struct loop *loop, struct timer *timer, uint64_t at_ms)
{
    if (!timer->at_ms) {
        timer->next = &loop->timers;
        timer->previous = loop->timers.previous;
        timer->previous->next = timer->next->previous = timer;
    }
    timer->at_ms = at_ms ? at_ms : 1;
}

void timer_stop(struct timer *timer)
{
    if (!timer->at_ms)
        return;
    timer->previous->next = timer->next;
    timer->next->previous = timer->previous;
    timer->at_ms = 0;
}

static int timeout_ms(const struct loop *loop)
{
    uint64_t first = UINT64_MAX;
    for (const struct timer *timer = loop->timers.next; timer != &loop->timers; timer = timer->next)
        if (timer->at_ms < first)
            first = timer->at_ms;
    if (first == UINT64_MAX)
        return -1;
    uint64_t now = now_ms();
    if (first <= now)
        return 0;
    return first - now > 3600000u ? 3600000 : (int)(first - now);
}

static void run_timers(struct loop *loop)
{
    if (loop->timers.next == &loop->timers)
        return;
    uint64_t now = now_ms();
    for (struct timer *timer = loop->timers.next; timer != &loop->timers;) {
        if (timer->at_ms > now) {
            timer = timer->next;
            continue;
        }
        timer_stop(timer);
        timer->due(timer);
        timer = loop->timers.next; /* what came due may have stopped others */
    }
}

static void bury(struct loop *loop)
{
    while (loop->dead) {
        struct source *source = loop->dead;
        loop->dead = source->next_dead;
        free(source);
    }
}

void loop_turn(struct loop *loop, int (*before_wait)(void *), void *of)
{
    struct epoll_event events[BATCH];
    int pending = before_wait(of);
    int count = epoll_wait(loop->epoll, events, BATCH, pending ? 0 : timeout_ms(loop));
    for (int i = 0; i < count; i++) {
        struct source *source = events[i].data.ptr;
        if (source->fd >= 0)
            source->ready(source, events[i].events);
    }
    run_timers(loop);
    bury(loop);
}
