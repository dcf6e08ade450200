/* A forked child that carries out one request as its user, on the client's socket, and may block. */
#ifndef WORKER_H
#define WORKER_H

#include "conn.h"

void worker_start(struct conn *conn, struct frame *request);

/* True where `pid` was a worker. */
int worker_has_ended(struct keeper *keeper, pid_t pid);

/* True for workers and watchers, which are nobody's processes. */
int is_worker(const struct keeper *keeper, pid_t pid);

/* What the worker itself has in hand. */
struct work {
    const struct keeper *keeper; /* as it was at the fork */
    struct frame *request;
    int socket;
    const uint8_t *rest; /* what the client sent behind the request */
    size_t rest_size;
    uint8_t *out; /* replies that are not sent yet */
    size_t out_used;
};

/* What a worker does; 0, or a negative errno that ERROR is to carry. */
typedef int job(struct work *work);
job files_read, files_write, files_stat, files_make, files_move, walk_list, walk_remove, watch, list_processes,
    list_ports, show_usage;

/* Sends a frame, sooner or later. */
void work_send(struct work *work, const struct frame *frame);
void work_send_ok(struct work *work, uint64_t value);
void work_send_end(struct work *work);

/* Sends at once; ends the worker where the client is gone. */
void work_send_raw(struct work *work, const void *data, size_t size);
void work_flush(struct work *work);

/* Reads what the client sends, what came with the request first; 0 at the end. */
size_t work_receive(struct work *work, void *to, size_t size);

#endif
