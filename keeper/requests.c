#define _GNU_SOURCE
#include "requests.h"
#include "run.h"
#include "streams.h"
#include "worker.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

typedef void handler(struct conn *conn, struct frame *request);

static const struct request {
    handler *handle;
    int has_user;  /* it says as whom */
    int is_worked; /* a forked worker does it */
    int is_quiet;  /* it does not count as use of the sandbox */
} requests[] = {
    [RUN] = {run_start, 1, 0, 1},
    [ATTACH] = {run_attach, 0, 0, 0},
    [INPUT] = {run_input, 0, 0, 0},
    [SIGNAL] = {run_signal, 0, 0, 0},
    [PROCESSES] = {worker_start, 0, 1, 0},
    [USAGE] = {worker_start, 0, 1, 1},
    [PORTS] = {worker_start, 0, 1, 0},
    [CONNECT] = {stream_connect, 0, 0, 0},
    [EGRESS] = {stream_egress, 0, 0, 1},
    [WATCH] = {worker_start, 1, 0, 0},
    [READ] = {worker_start, 1, 1, 0},
    [WRITE] = {worker_start, 1, 1, 0},
    [STAT] = {worker_start, 1, 1, 0},
    [LIST] = {worker_start, 1, 1, 0},
    [MAKE] = {worker_start, 1, 1, 0},
    [MOVE] = {worker_start, 1, 1, 0},
    [REMOVE] = {worker_start, 1, 1, 0},
};

static const struct request *find(uint8_t type)
{
    return type < sizeof requests / sizeof *requests && requests[type].handle ? &requests[type] : NULL;
}

int request_must_wait(const struct conn *conn, uint8_t type)
{
    const struct request *request = find(type);
    return request && request->is_worked && conn->keeper->worker_count >= MAX_WORKERS;
}

static int is_user_allowed(const struct keeper *keeper, const struct frame *request)
{
    const struct options *options = &keeper->options;
    if (options->is_host)
        return request->uid == geteuid() && request->gid == getegid();
    if (options->uid_only >= 0)
        return request->uid == (uint32_t)options->uid_only;
    return request->uid != UINT32_MAX && request->gid != UINT32_MAX; /* -1 would mean: leave it as it is */
}

static const char *explain(int code)
{
    switch (code) {
    case EPROTONOSUPPORT:
        return "this keeper speaks version 1 of the protocol only";
    case EINVAL:
        return "a path, an argument or a variable holds a NUL";
    case E2BIG:
        return "a list has more than 4096 items";
    default:
        return "the request is not laid out as the protocol has it";
    }
}

void handle_request(struct conn *conn, uint8_t type, uint8_t *payload, uint32_t size)
{
    struct keeper *keeper = conn->keeper;
    const struct request *request = find(type);
    struct frame *frame = &keeper->request;
    if (!request) {
        conn_fail(conn, EBADMSG, "the first frame is not a request");
        return;
    }
    memset(frame, 0, sizeof *frame);
    int rc = frame_decode(frame, type, payload, size, keeper->pool);
    if (rc < 0) {
        conn_fail(conn, -rc, explain(-rc));
        return;
    }
    if (request->has_user && !is_user_allowed(keeper, frame)) {
        conn_fail(conn, EPERM, "this keeper cannot act as that user");
        return;
    }
    if (!request->is_quiet)
        set_active(keeper, &conn->is_counted, 1);
    request->handle(conn, frame);
}
