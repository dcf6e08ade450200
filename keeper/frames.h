/* The codec of docs/protocol.md: pure, no input or output. */
#ifndef FRAMES_H
#define FRAMES_H

#include <stddef.h>
#include <stdint.h>

enum {
    PROTOCOL_VERSION = 1,
    HEADER_SIZE = 5,
    MAX_PAYLOAD = 1 << 20,
    MAX_ITEMS = 4096,
    ITEM_POOL = 2 * (MAX_ITEMS + 1), /* no frame has more than two lists */
};

enum frame_type {
    RUN = 1, ATTACH, INPUT, SIGNAL, PROCESSES, USAGE, PORTS, CONNECT, EGRESS,
    WATCH, READ, WRITE, STAT, LIST, MAKE, MOVE, REMOVE,
    STDIN = 32, STDIN_END, RESIZE,
    STARTED = 64, STDOUT, STDERR, GAP, EXIT, OK, ERROR, DATA, END,
    ENTRY, EVENT, PROCESS, PORT, USAGE_IS, PEER,
};

enum { RUN_STDIN = 1, RUN_PTY = 2, RUN_BACKGROUND = 4, RUN_CHANNEL = 8 };
enum { ATTACH_FOLLOW = 1, ATTACH_OWN = 2 };
enum { INPUT_DATA, INPUT_END, INPUT_RESIZE };
enum { SCOPE_PROCESS = 0, SCOPE_TREE = 2 };
enum { WATCH_RECURSIVE = 1 };
enum { WRITE_APPEND = 1, WITH_PARENTS = 2, WRITE_EXCLUSIVE = 4 };
enum { STAT_NOFOLLOW = 1, REMOVE_RECURSIVE = 1 };
enum { MAKE_FOLDER = 1, MAKE_LINK = 2 };
enum { EXIT_TIME_LIMIT = 1, EXIT_KILLED = 2, EXIT_LEFT_RUNNING = 4, EXIT_DISK_FULL = 8, EXIT_INODES_FULL = 16 };
enum { PROCESS_RUN = 1, PROCESS_BACKGROUND = 2, PROCESS_ENDED = 4, PROCESS_TERMINAL = 8, PROCESS_STDIN = 16, PROCESS_KILLED = 32 };

struct octets {
    const uint8_t *at;
    uint32_t size;
};

struct list {
    uint32_t count;
    char **items; /* ends with NULL, as execve wants it */
};

/* Every field that any frame has; `type` says which of them count. */
struct frame {
    uint8_t type, version, kind, scope, state;
    uint16_t rows, cols, port;
    uint32_t flags, uid, gid, pid, parent, signal, mode, depth, code, links, processes, runs;
    int32_t exit_code;
    int64_t mtime_ns;
    uint64_t time_limit_ms, output_limit, offset, limit, started_ns, octets, wall_ns, user_us, system_us,
        peak_bytes, dropped, value, size, inode, cpu_us, memory_bytes, disk_bytes, disk_free, inodes,
        inodes_free, uptime_ms, idle_ms;
    char *path, *cwd, *destination, *target; /* NUL-terminated */
    struct octets tag, data, name, link, message, address;
    struct list argv, env;
};

/*
 * Decodes `size` octets of payload, which are changed: strings are moved by one octet to make room for
 * their NUL, and the frame points into them. `pool` has room for ITEM_POOL pointers, for the lists.
 * Returns 0 or a negative errno.
 */
int frame_decode(struct frame *frame, uint8_t type, uint8_t *payload, size_t size, char **pool);

/* Writes header and payload to `to`; returns the size, or a negative errno where it does not fit. */
long frame_encode(const struct frame *frame, uint8_t *to, size_t room);

void put_header(uint8_t *to, uint8_t type, uint32_t size);
uint32_t get_u32(const uint8_t *from);

/* NULL where the protocol has no such type. */
const struct layout *layout_of(uint8_t type);

enum field_kind { U8, U16, U32, U64, I32, I64, STRING, BYTES, ITEMS, REST };

struct field {
    const char *name;
    enum field_kind kind;
    size_t offset;
};

struct layout {
    uint8_t type;
    const char *name;
    struct field fields[17]; /* ends with a field without a name */
};

#endif
