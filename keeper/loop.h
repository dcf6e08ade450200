/* The event loop: descriptors that become ready, and moments that come. */
#ifndef LOOP_H
#define LOOP_H

#include <stdint.h>

/* Something to read from or to write to; first member of what owns it, where that is discarded. */
struct source {
    int fd; /* -1: closed, no event is delivered any more */
    uint32_t events;
    int is_listed; /* epoll knows of it */
    void (*ready)(struct source *source, uint32_t events);
    struct source *next_dead;
};

struct timer {
    uint64_t at_ms; /* 0: not set */
    void (*due)(struct timer *timer);
    struct timer *next, *previous;
};

struct loop {
    int epoll;
    struct timer timers; /* ring */
    struct source *dead;
};

int loop_open(struct loop *loop);

/* Waits once, and delivers what there is. */
void loop_turn(struct loop *loop, int (*before_wait)(void *), void *of);

int loop_add(struct loop *loop, struct source *source, uint32_t events);
void loop_change(struct loop *loop, struct source *source, uint32_t events);

/* The same, but no events means not to listen at all: epoll tells of a hang-up whoever asks for nothing. */
void loop_listen(struct loop *loop, struct source *source, uint32_t events);

/* Events are delivered no more; the descriptor stays. */
void loop_remove(struct loop *loop, struct source *source);

/* Closes the descriptor; the events that are under way for it are dropped. */
void loop_close(struct loop *loop, struct source *source);

/* Frees the owner of `source` once no event can name it; the source is its first member. */
void loop_discard(struct loop *loop, struct source *source);

void timer_set(struct loop *loop, struct timer *timer, uint64_t at_ms);
void timer_stop(struct timer *timer);

uint64_t now_ms(void);
uint64_t now_ns(void);

#endif
