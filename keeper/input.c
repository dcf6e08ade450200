#define _GNU_SOURCE
#include "pty.h"
#include "run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* Input that the command has not taken yet; its connection is paused until then. */
struct input_chunk {
    struct input_chunk *next;
    struct conn *conn;
    int is_end;
    size_t size, done;
    uint8_t data[];
};

/* A client of the run goes on; one that asked for this input only has its answer. */
static void answer(struct conn *conn, int code)
{
    if (!conn)
        return;
    if (conn->operation == &follow_operation) {
        conn_resume(conn);
        return;
    }
    conn->run = NULL;
    if (code)
        conn_fail(conn, code, "its standard input is closed");
    else
        conn_ok(conn, 0);
}

static void pop(struct run *run, int code)
{
    struct input_chunk *chunk = run->chunks;
    struct conn *conn = chunk->conn;
    run->chunks = chunk->next;
    if (!run->chunks)
        run->last_chunk = &run->chunks;
    free(chunk);
    answer(conn, code);
}

static void end_input(struct run *run)
{
    int end = run->flags & RUN_PTY ? pty_end_character(run->input.fd) : -1;
    uint8_t octet = (uint8_t)end;
    if (end >= 0)
        (void)!write(run->input.fd, &octet, 1);
    if (!(run->flags & RUN_PTY))
        loop_close(&run->keeper->loop, &run->input);
}

static void write_chunks(struct run *run)
{
    while (run->chunks && run->input.fd >= 0) {
        struct input_chunk *chunk = run->chunks;
        if (chunk->is_end) {
            end_input(run);
            pop(run, 0);
            continue;
        }
        ssize_t n = write(run->input.fd, chunk->data + chunk->done, chunk->size - chunk->done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            break;
        if (n < 0) {
            input_close(run);
            return;
        }
        chunk->done += (size_t)n;
        if (chunk->done == chunk->size)
            pop(run, 0);
    }
    if (run->input.fd < 0)
        input_close(run);
    else
        loop_change(&run->keeper->loop, &run->input, run->chunks ? EPOLLOUT : 0);
}

static void on_input(struct source *source, uint32_t events)
{
    struct run *run = OWNER(struct run, input, source);
    if (run->chunks) {
        write_chunks(run);
        return;
    }
    if (events & (EPOLLERR | EPOLLHUP))
        input_close(run);
}

void input_open(struct run *run, int fd)
{
    run->input = (struct source){.fd = fd, .ready = on_input};
    if (fd >= 0)
        loop_add(&run->keeper->loop, &run->input, 0);
}

void input_close(struct run *run)
{
    loop_close(&run->keeper->loop, &run->input);
    while (run->chunks)
        pop(run, EPIPE);
}

static int add_chunk(struct run *run, struct conn *conn, const uint8_t *data, size_t size, int is_end)
{
    struct input_chunk *chunk = malloc(sizeof *chunk + size);
    if (!chunk)
        return -ENOMEM;
    *chunk = (struct input_chunk){.conn = conn, .is_end = is_end, .size = size};
    if (size)
        memcpy(chunk->data, data, size);
    *run->last_chunk = chunk;
    run->last_chunk = &chunk->next;
    conn_pause(conn);
    loop_change(&run->keeper->loop, &run->input, EPOLLOUT);
    return 1;
}

int input_add(struct run *run, struct conn *conn, const uint8_t *data, size_t size)
{
    size_t done = 0;
    if (run->input.fd < 0)
        return -EPIPE;
    while (!run->chunks && done < size) {
        ssize_t n = write(run->input.fd, data + done, size - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            break;
        if (n < 0) {
            input_close(run);
            return -EPIPE;
        }
        done += (size_t)n;
    }
    if (done == size)
        return 0;
    return add_chunk(run, conn, data + done, size - done, 0);
}

int input_end(struct run *run, struct conn *conn)
{
    if (run->input.fd < 0)
        return -EPIPE;
    if (run->chunks)
        return add_chunk(run, conn, NULL, 0, 1);
    end_input(run);
    return 0;
}

int input_resize(struct run *run, uint16_t rows, uint16_t cols)
{
    if (!(run->flags & RUN_PTY) || run->input.fd < 0)
        return -ENOTTY;
    return pty_resize(run->input.fd, rows, cols);
}

void input_forget(struct run *run, const struct conn *conn)
{
    struct input_chunk **at = &run->chunks;
    while (*at) {
        struct input_chunk *chunk = *at;
        if (chunk->conn == conn && run->flags & RUN_CHANNEL)
            chunk->conn = NULL; /* whose turn is next finds no half of a request there */
        if (chunk->conn != conn) {
            at = &chunk->next;
            continue;
        }
        *at = chunk->next;
        free(chunk);
    }
    run->last_chunk = at;
}

static void forget_input(struct conn *conn)
{
    if (conn->run)
        input_forget(conn->run, conn);
}

static const struct operation input_operation = {.gone = forget_input};

void run_input(struct conn *conn, struct frame *request)
{
    struct run *run = run_find(conn->keeper, request->pid);
    int rc = -ESRCH;
    if (run && !run->has_ended && run->input.fd >= 0) {
        conn->run = run;
        conn->operation = &input_operation;
        rc = request->kind == INPUT_DATA     ? input_add(run, conn, request->data.at, request->data.size)
             : request->kind == INPUT_END    ? input_end(run, conn)
             : request->kind == INPUT_RESIZE ? input_resize(run, request->rows, request->cols)
                                             : -EINVAL;
    } else if (run && !run->has_ended) {
        rc = -EPIPE;
    }
    if (rc < 0)
        conn_fail(conn, -rc, rc == -EPIPE ? "its standard input is closed" : strerror(-rc));
    else if (rc == 0)
        conn_ok(conn, 0);
    /* else: answered when all has been taken */
}
