/* A connection of a client: frames in, frames out. */
#ifndef CONN_H
#define CONN_H

#include "keeper.h"

struct conn;

/* What goes on on a connection once its request is there; any of them may be NULL. */
struct operation {
    void (*frame)(struct conn *conn, uint8_t type, uint8_t *payload, uint32_t size);
    void (*writable)(struct conn *conn);
    void (*hangup)(struct conn *conn); /* instead of an end at once */
    void (*gone)(struct conn *conn); /* the connection is about to be closed, for whatever reason */
};

struct conn {
    struct source source;
    struct keeper *keeper;
    struct conn *next, *previous;
    struct conn *next_dirty;
    struct timer timer;
    const struct operation *operation;
    uint8_t *in; /* what came and is not handled yet */
    size_t in_size, in_used;
    const uint8_t *rest; /* while a frame is handled: what came behind it */
    size_t rest_size;
    uint8_t *out;
    size_t out_size, out_used;
    int is_dirty, is_blocked, is_paused, is_closing, is_counted, is_ended, is_waiting, is_handed_over;

    struct run *run; /* RUN, ATTACH */
    struct conn *next_follower;
    uint64_t offset;
    int follows, is_owner;
    size_t splice_left; /* octets announced and not yet moved, from this pipe of the run */
    int splice_index;
    void *of; /* the worker or the stream that serves it */
};

int conns_open(struct keeper *keeper);

/* Puts a frame on the way; the connection may be closed when it returns to the loop. */
void conn_send(struct conn *conn, const struct frame *frame);
void conn_queue(struct conn *conn, const void *data, size_t size);

/* Sends at once what can be; 0 where something has to wait, and `is_blocked` is set then. */
int conn_flush(struct conn *conn);

/* Answers and closes. */
void conn_fail(struct conn *conn, int code, const char *message);
void conn_ok(struct conn *conn, uint64_t value);

/* Closes once all is sent. */
void conn_finish(struct conn *conn);
void conn_close(struct conn *conn);

/* Input is left where it is until resumed. */
void conn_pause(struct conn *conn);
void conn_resume(struct conn *conn);

/* Its socket is somebody else's to read and write; only a hang-up is still noticed. */
void conn_hand_over(struct conn *conn);

/* Takes the descriptor away from the connection, which is freed. */
int conn_release(struct conn *conn);

/* Sends all that was queued since the last turn of the loop. */
int conns_flush(void *keeper);

#endif
