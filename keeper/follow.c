#define _GNU_SOURCE
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    PIPE_OCTETS = 1 << 20,  /* for a run that writes a lot */
    SPLICE_FROM = 16 << 10, /* below it a copy costs less */
    TERMINAL_MS = 100,      /* until one that was let go is looked at again */
};

static void send_started(struct conn *conn, const struct run *run)
{
    conn_send(conn, &(struct frame){
                        .type = STARTED,
                        .pid = (uint32_t)run->pid,
                        .started_ns = run->started_clock_ns,
                        .offset = conn->offset,
                    });
}

void follow_started(struct run *run)
{
    for (struct conn *conn = run->followers; conn; conn = conn->next_follower)
        send_started(conn, run);
    follow_feed(run);
}

void follow_update_interest(struct run *run)
{
    const struct conn *owner = run->owner;
    int is_wanted = !owner || (!owner->splice_left && (run->is_finished || !owner->is_blocked));
    for (int i = 0; i < 2; i++)
        if (run->is_started)
            loop_listen(&run->keeper->loop, &run->outputs[i].source, is_wanted ? EPOLLIN : 0);
    channel_feed(run);
}

/* What stays with a frame that was announced and whose octets somebody else has read away. */
static void fill_with_zeros(struct conn *conn)
{
    static const uint8_t zeros[4096];
    while (conn->splice_left) {
        size_t part = conn->splice_left < sizeof zeros ? conn->splice_left : sizeof zeros;
        conn_queue(conn, zeros, part);
        conn->splice_left -= part;
    }
}

static void splice_on(struct run *run, struct conn *conn)
{
    int pipe = run->outputs[conn->splice_index].source.fd;
    while (conn->splice_left) {
        ssize_t n = splice(pipe, NULL, conn->source.fd, NULL, conn->splice_left, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
        if (n > 0) {
            conn->splice_left -= (size_t)n;
            continue;
        }
        int waiting = 0;
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno != EAGAIN && errno != ENOMEM) {
            conn->splice_left = 0;
            conn_close(conn);
            return;
        }
        if (ioctl(pipe, FIONREAD, &waiting) < 0 || waiting == 0) {
            fill_with_zeros(conn);
            return;
        }
        conn->is_blocked = 1;
        loop_change(&conn->keeper->loop, &conn->source, conn->source.events | EPOLLOUT);
        break;
    }
}

static void feed(struct conn *conn)
{
    struct run *run = conn->run;
    uint8_t header[HEADER_SIZE];
    if (conn->is_owner && !run->is_finished)
        return;
    while (run->is_started && !conn->is_blocked && !conn->is_closing && conn->source.fd >= 0) {
        struct piece piece = output_at(&run->output, conn->offset, SCRATCH_SIZE);
        if (piece.gap)
            conn_send(conn, &(struct frame){.type = GAP, .octets = piece.gap});
        conn->offset += piece.gap;
        if (piece.size) {
            put_header(header, piece.is_error ? STDERR : STDOUT, (uint32_t)piece.size);
            conn_queue(conn, header, sizeof header);
            conn_queue(conn, piece.data, piece.size);
            conn->offset += piece.size;
            conn_flush(conn);
        } else if (run->is_finished) {
            conn_send(conn, &run->exit);
            conn_finish(conn);
        } else if (!conn->follows) {
            conn_send(conn, &(struct frame){.type = END});
            conn_finish(conn);
        } else {
            return;
        }
    }
}

void follow_feed(struct run *run)
{
    for (struct conn *conn = run->followers, *next; conn; conn = next) {
        next = conn->next_follower;
        feed(conn);
    }
}

void follow_begin(struct run *run, struct conn *conn)
{
    conn->run = run;
    conn->operation = &follow_operation;
    conn->next_follower = run->followers;
    run->followers = conn;
    if (!run->is_started)
        return;
    send_started(conn, run);
    feed(conn);
}

/*
 * A terminal that nobody holds at the moment stays open while the command runs: closing our end would send
 * it SIGHUP, and many a program closes its output just before it exits.
 */
static void end_of_pipe(struct pipe_end *end)
{
    struct run *run = end->run;
    if (run->flags & RUN_PTY && !run->has_ended) {
        loop_remove(&run->keeper->loop, &end->source);
        timer_set(&run->keeper->loop, &run->drain, now_ms() + TERMINAL_MS);
        return;
    }
    loop_close(&run->keeper->loop, &end->source);
    channel_note(run, end->index, SIZE_MAX);
    if (run->is_finished)
        run_settle(run);
    else
        run_check_drained(run);
}

static void note_progress(const struct pipe_end *end, size_t size)
{
    struct run *run = end->run;
    channel_note(run, end->index, size);
    if (!run->has_ended)
        return;
    run->drained += size;
    timer_set(&run->keeper->loop, &run->drain, now_ms() + 100);
    run_check_drained(run);
}

static uint8_t frame_type(const struct pipe_end *end)
{
    return end->index ? STDERR : STDOUT;
}

/* Moves what is in the pipe to the client without looking at it; false where it is too little for that. */
static int pass_by_splice(struct pipe_end *end, struct conn *owner, uint64_t budget)
{
    struct run *run = end->run;
    uint8_t header[HEADER_SIZE];
    int waiting = 0;
    if (!end->is_bulk || owner->next_follower || run->followers != owner)
        return 0;
    if (ioctl(end->source.fd, FIONREAD, &waiting) < 0 || waiting < SPLICE_FROM)
        return 0;
    size_t size = (size_t)waiting < MAX_PAYLOAD ? (size_t)waiting : MAX_PAYLOAD;
    if (size > budget)
        size = (size_t)budget;
    put_header(header, frame_type(end), (uint32_t)size);
    conn_queue(owner, header, sizeof header);
    owner->splice_left = size;
    owner->splice_index = end->index;
    output_pass(&run->output, size);
    owner->offset = run->output.total;
    if (conn_flush(owner))
        splice_on(run, owner);
    note_progress(end, size);
    return 1;
}

static void pass_by_copy(struct pipe_end *end, struct conn *owner, uint64_t budget)
{
    struct run *run = end->run;
    uint8_t *scratch = run->keeper->scratch;
    size_t room = budget < SCRATCH_SIZE ? (size_t)budget : SCRATCH_SIZE;
    ssize_t n = read(end->source.fd, scratch + HEADER_SIZE, room);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) { /* a terminal gives EIO once nobody holds it */
        end_of_pipe(end);
        return;
    }
    if (n == SCRATCH_SIZE && !end->is_bulk) {
        end->is_bulk = 1;
        fcntl(end->source.fd, F_SETPIPE_SZ, PIPE_OCTETS); /* may be refused: then it stays as it is */
    }
    put_header(scratch, frame_type(end), (uint32_t)n);
    conn_queue(owner, scratch, HEADER_SIZE + (size_t)n);
    if (run->followers != owner || owner->next_follower)
        output_add_passed(&run->output, scratch + HEADER_SIZE, (size_t)n, end->index);
    else
        output_pass(&run->output, (uint64_t)n);
    owner->offset = run->output.total;
    if (n > SPLICE_FROM)
        conn_flush(owner);
    follow_feed(run);
    note_progress(end, (size_t)n);
}

static void keep(struct pipe_end *end)
{
    struct run *run = end->run;
    uint8_t *scratch = run->keeper->scratch;
    ssize_t n = read(end->source.fd, scratch, SCRATCH_SIZE);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        end_of_pipe(end);
        return;
    }
    if (run->is_finished)
        return; /* of leftover processes, whose output nobody waits for */
    if (run->flags & RUN_CHANNEL)
        output_pass(&run->output, (uint64_t)n); /* between two owners it is nobody's */
    else
        output_add(&run->output, scratch, (size_t)n, end->index);
    follow_feed(run);
    note_progress(end, (size_t)n);
}

void follow_output(struct pipe_end *end)
{
    struct run *run = end->run;
    struct conn *owner = run->owner;
    uint64_t budget = owner ? output_budget(&run->output, run->output_limit == 0) : 0;
    /* First of all: what was announced in a frame is still in the pipe, and nobody else may read it. */
    if (owner && (owner->splice_left || (budget && owner->is_blocked && !run->is_finished))) {
        follow_update_interest(run);
        return;
    }
    if (run->is_finished || !budget) {
        keep(end);
        return;
    }
    if (!pass_by_splice(end, owner, budget))
        pass_by_copy(end, owner, budget);
}

static void on_frame(struct conn *conn, uint8_t type, uint8_t *payload, uint32_t size)
{
    struct run *run = conn->run;
    struct frame frame = {0};
    if (!conn->is_owner && !(run->flags & RUN_BACKGROUND)) {
        conn_close(conn);
        return;
    }
    if (type == END && run->flags & RUN_CHANNEL && size == 0) {
        run->channel.is_at_rest = 1;
        return;
    }
    if ((type != STDIN && type != STDIN_END && type != RESIZE) || frame_decode(&frame, type, payload, size, NULL) < 0) {
        conn_close(conn);
        return;
    }
    /* Input for a command that has closed it is dropped, as a shell's pipe drops it. */
    if (type == STDIN)
        input_add(run, conn, frame.data.at, frame.data.size);
    else if (type == STDIN_END)
        input_end(run, conn);
    else
        input_resize(run, frame.rows, frame.cols);
}

static void on_writable(struct conn *conn)
{
    struct run *run = conn->run;
    if (conn->splice_left)
        splice_on(run, conn);
    if (conn->source.fd < 0 || conn->is_blocked)
        return;
    if (conn->is_owner) {
        follow_update_interest(run);
        run_check_drained(run);
    }
    if (conn->source.fd >= 0)
        feed(conn);
}

static void on_gone(struct conn *conn)
{
    struct run *run = conn->run;
    struct conn **at = &run->followers;
    while (*at != conn)
        at = &(*at)->next_follower;
    *at = conn->next_follower;
    input_forget(run, conn);
    if (conn->is_owner && !run->has_failed) {
        int was_told = conn->is_closing && !conn->out_used;
        run->owner = NULL;
        if (run->flags & RUN_CHANNEL)
            channel_pass_on(run, conn);
        else if (!run->is_finished)
            output_keep_from_here(&run->output, run->output_limit == 0);
        else if (!was_told && !run->is_kept) {
            run->is_kept = 1;
            run->keeper->ended_count++;
        }
        follow_update_interest(run);
    }
    run_settle(run);
}

const struct operation follow_operation = {.frame = on_frame, .writable = on_writable, .gone = on_gone};
