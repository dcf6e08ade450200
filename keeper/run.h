/* A run: one command with its output, its input and all that it started. */
#ifndef RUN_H
#define RUN_H

#include "conn.h"
#include "output.h"
#include "tree.h"

#include <sys/resource.h>

struct pipe_end {
    struct source source;
    struct run *run;
    int index, is_bulk;
};

/* What a command says on descriptor 3, for its owner alone. */
struct channel {
    struct pipe_end end;
    size_t announced; /* octets that wait in the pipe, and the octets of output that are to go before them: */
    size_t before[2];
    int is_at_rest;       /* the owner has got all that it asked for */
    struct conn *waiting; /* for their turn */
};

struct input_chunk;

struct run {
    struct source status; /* the read end of the pipe that tells how execve went; first, for the discard */
    struct keeper *keeper;
    struct run *next, *previous;
    struct timer limit, drain;
    struct pipe_end outputs[2]; /* standard output or the terminal; standard error */
    struct tree tree;
    struct output output;
    struct channel channel;
    struct conn *owner;     /* the client of RUN, while it is there; of a channel, whoever's turn it is */
    struct conn *followers; /* all clients, the owner too */

    struct source input; /* -1: has none */
    struct input_chunk *chunks, **last_chunk;

    pid_t pid;
    uint32_t flags, uid;
    uint64_t output_limit, time_limit_ms;
    uint8_t *tag, *argv; /* argv: `argv_count` strings, one behind the other */
    uint32_t tag_size, argv_count;
    size_t argv_size;
    uint32_t exit_flags;

    int is_started;  /* the command has been executed: STARTED was sent */
    int has_ended;   /* the first process was waited for */
    int is_finished; /* its output is drained: EXIT is out or can be had */
    int is_active, is_kept, has_failed, is_gone, tree_signal;
    uint64_t started_ns, started_clock_ns; /* monotonic, since the epoch */
    uint64_t ended_ms, due_octets, drained;
    struct frame exit;
};

void run_start(struct conn *conn, struct frame *request);
void run_attach(struct conn *conn, struct frame *request);
void run_input(struct conn *conn, struct frame *request);
void run_signal(struct conn *conn, struct frame *request);

struct run *run_find(struct keeper *keeper, uint32_t pid);

/* The first process of the run has been waited for. */
void run_has_ended(struct run *run, int status, const struct rusage *usage, int left_running);

/* STARTED is due as soon as the command is executed and its number is known. */
void run_progress(struct run *run);

/* The command was not executed, for want of `step`. */
void run_fail(struct run *run, int code, const char *step);

/* Nothing of it runs any more, or may not: gives it back where nobody needs it. */
void run_settle(struct run *run);

/* Ends all of it, with that flag in EXIT. */
void run_kill(struct run *run, uint32_t flag);

/* follow.c: from a run's pipes to its clients. */
extern const struct operation follow_operation;
void follow_output(struct pipe_end *end);
size_t waiting_octets(const struct pipe_end *end);
void follow_feed(struct run *run);
void follow_begin(struct run *run, struct conn *conn);
void follow_started(struct run *run);

/* Output may be read again, or not: the owner takes it, or there is no owner. */
void follow_update_interest(struct run *run);

/* A pipe is at its end, or gave octets, or the process has ended. */
void run_check_drained(struct run *run);

/* channel.c: from a run's descriptor 3 to the client whose turn it is. */
void channel_open(struct run *run, int fd);
void channel_close(struct run *run);
void channel_own(struct run *run, struct conn *conn);

/* The owner leaves: the next one's turn. */
void channel_pass_on(struct run *run, const struct conn *last);

/* Hands on what waits, where nothing has to go before it. */
void channel_feed(struct run *run);

/* So much of that output has been handed on; all of it where that is its end. */
void channel_note(struct run *run, int index, size_t size);

/* It was not started: whoever waits is told. */
void channel_fail(struct run *run, int code, const char *message);

/* What is left goes to the owner, and nobody waits any more: the run has ended. */
void channel_finish(struct run *run);

/* input.c: from clients to a run's standard input. */
int input_add(struct run *run, struct conn *conn, const uint8_t *data, size_t size);
int input_end(struct run *run, struct conn *conn);
int input_resize(struct run *run, uint16_t rows, uint16_t cols);
void input_forget(struct run *run, const struct conn *conn);
void input_close(struct run *run);
void input_open(struct run *run, int fd);

#endif
