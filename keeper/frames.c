#include "frames.h"

#include <errno.h>
#include <string.h>

#define F(kind, member) {#member, kind, offsetof(struct frame, member)}
#define NAMED(kind, name, member) {name, kind, offsetof(struct frame, member)}
#define VERSION F(U8, version)
#define USER F(U32, uid), F(U32, gid)

static const struct layout layouts[] = {
    {RUN, "RUN", {VERSION, F(U32, flags), USER, F(U64, time_limit_ms), F(U64, output_limit), F(U16, rows),
                  F(U16, cols), F(STRING, cwd), F(BYTES, tag), F(ITEMS, argv), F(ITEMS, env)}},
    {ATTACH, "ATTACH", {VERSION, F(U32, flags), F(U32, pid), F(U64, offset)}},
    {INPUT, "INPUT", {VERSION, F(U32, pid), F(U8, kind), F(U16, rows), F(U16, cols), F(BYTES, data)}},
    {SIGNAL, "SIGNAL", {VERSION, F(U32, pid), F(U32, signal), F(U8, scope)}},
    {PROCESSES, "PROCESSES", {VERSION}},
    {USAGE, "USAGE", {VERSION}},
    {PORTS, "PORTS", {VERSION}},
    {CONNECT, "CONNECT", {VERSION, F(U16, port)}},
    {EGRESS, "EGRESS", {VERSION}},
    {WATCH, "WATCH", {VERSION, F(U32, flags), USER, F(STRING, path)}},
    {READ, "READ", {VERSION, USER, F(U64, offset), F(U64, limit), F(STRING, path)}},
    {WRITE, "WRITE", {VERSION, F(U32, flags), USER, F(U32, mode), F(STRING, path)}},
    {STAT, "STAT", {VERSION, F(U32, flags), USER, F(STRING, path)}},
    {LIST, "LIST", {VERSION, USER, F(U32, depth), F(STRING, path)}},
    {MAKE, "MAKE", {VERSION, F(U32, flags), USER, F(U32, mode), F(U8, kind), F(STRING, path),
                    F(STRING, target)}},
    {MOVE, "MOVE", {VERSION, F(U32, flags), USER, NAMED(STRING, "source", path), F(STRING, destination)}},
    {REMOVE, "REMOVE", {VERSION, F(U32, flags), USER, F(STRING, path)}},
    {STDIN, "STDIN", {F(REST, data)}},
    {STDIN_END, "STDIN_END", {{0}}},
    {RESIZE, "RESIZE", {F(U16, rows), F(U16, cols)}},
    {STARTED, "STARTED", {F(U32, pid), F(U64, started_ns), F(U64, offset)}},
    {STDOUT, "STDOUT", {F(REST, data)}},
    {STDERR, "STDERR", {F(REST, data)}},
    {GAP, "GAP", {F(U64, octets)}},
    {EXIT, "EXIT", {F(I32, exit_code), F(U32, signal), F(U32, flags), F(U64, wall_ns), F(U64, user_us),
                    F(U64, system_us), F(U64, peak_bytes), F(U64, dropped), F(U64, offset)}},
    {OK, "OK", {F(U64, value)}},
    {ERROR, "ERROR", {F(U32, code), F(BYTES, message)}},
    {DATA, "DATA", {F(REST, data)}},
    {END, "END", {{0}}},
    {ENTRY, "ENTRY", {F(U8, kind), F(U32, mode), USER, F(U64, size), F(I64, mtime_ns), F(U64, inode),
                      F(U32, links), F(BYTES, name), NAMED(BYTES, "target", link)}},
    {EVENT, "EVENT", {F(U8, kind), F(BYTES, name)}},
    {PROCESS, "PROCESS", {F(U32, pid), F(U32, parent), F(U32, uid), F(U32, flags), F(U8, state),
                          F(I32, exit_code), F(U32, signal), F(U64, started_ns), F(U64, cpu_us),
                          F(U64, memory_bytes), F(U64, offset), F(BYTES, tag), F(ITEMS, argv)}},
    {PORT, "PORT", {F(BYTES, address), F(U16, port), F(U32, uid)}},
    {USAGE_IS, "USAGE_IS", {F(U64, disk_bytes), F(U64, disk_free), F(U64, inodes), F(U64, inodes_free),
                            F(U64, uptime_ms), F(U64, idle_ms), F(U32, processes), F(U32, runs)}},
    {PEER, "PEER", {F(BYTES, address), F(U16, port)}},
};

static const size_t widths[] = {[U8] = 1, [U16] = 2, [U32] = 4, [U64] = 8, [I32] = 4, [I64] = 8};

const struct layout *layout_of(uint8_t type)
{
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        if (layouts[i].type == type)
            return &layouts[i];
    return NULL;
}

uint32_t get_u32(const uint8_t *from)
{
    return from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 | (uint32_t)from[3] << 24;
}

void put_header(uint8_t *to, uint8_t type, uint32_t size)
{
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(size >> (8 * i));
    to[4] = type;
}

static uint64_t get_number(const uint8_t *from, size_t width)
{
    uint64_t value = 0;
    for (size_t i = 0; i < width; i++)
        value |= (uint64_t)from[i] << (8 * i);
    return value;
}

/* All targets are little-endian, as the wire is. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "fields are copied as they are");

struct reader {
    uint8_t *at;
    size_t left;
    char **pool;
};

static int take_octets(struct reader *in, uint8_t **at, uint32_t *size)
{
    if (in->left < 4)
        return -EBADMSG;
    uint32_t count = get_u32(in->at);
    if (count > in->left - 4)
        return -EBADMSG;
    *at = in->at + 4;
    *size = count;
    in->at += 4 + count;
    in->left -= 4 + (size_t)count;
    return 0;
}

static int take_string(struct reader *in, char **string)
{
    uint8_t *at;
    uint32_t size;
    int rc = take_octets(in, &at, &size);
    if (rc < 0)
        return rc;
    if (memchr(at, 0, size))
        return -EINVAL;
    memmove(at - 1, at, size); /* over the count, which has been read */
    at[-1 + (ptrdiff_t)size] = 0;
    *string = (char *)at - 1;
    return 0;
}

static int take_list(struct reader *in, struct list *list)
{
    if (in->left < 4)
        return -EBADMSG;
    uint32_t count = get_u32(in->at);
    if (count > MAX_ITEMS)
        return -E2BIG;
    in->at += 4;
    in->left -= 4;
    list->count = count;
    list->items = in->pool;
    in->pool += count + 1;
    for (uint32_t i = 0; i < count; i++) {
        int rc = take_string(in, &list->items[i]);
        if (rc < 0)
            return rc;
    }
    list->items[count] = NULL;
    return 0;
}

static int take_field(struct reader *in, const struct field *field, struct frame *frame)
{
    char *member = (char *)frame + field->offset;
    struct octets *octets = (struct octets *)(void *)member;
    uint8_t *at;
    int rc;
    switch (field->kind) {
    case STRING:
        return take_string(in, (char **)(void *)member);
    case ITEMS:
        return take_list(in, (struct list *)(void *)member);
    case BYTES:
        rc = take_octets(in, &at, &octets->size);
        if (rc == 0)
            octets->at = at;
        return rc;
    case REST:
        *octets = (struct octets){in->at, (uint32_t)in->left};
        in->left = 0;
        return 0;
    default:
        if (in->left < widths[field->kind])
            return -EBADMSG;
        uint64_t value = get_number(in->at, widths[field->kind]);
        memcpy(member, &value, widths[field->kind]);
        in->at += widths[field->kind];
        in->left -= widths[field->kind];
        return 0;
    }
}

int frame_decode(struct frame *frame, uint8_t type, uint8_t *payload, size_t size, char **pool)
{
    const struct layout *layout = layout_of(type);
    struct reader in = {payload, size, pool};
    if (!layout || size > MAX_PAYLOAD)
        return -EBADMSG;
    frame->type = type;
    if (type <= REMOVE && size > 0 && payload[0] != PROTOCOL_VERSION)
        return -EPROTONOSUPPORT;
    for (const struct field *field = layout->fields; field->name; field++) {
        int rc = take_field(&in, field, frame);
        if (rc < 0)
            return rc;
    }
    return in.left ? -EBADMSG : 0;
}

struct writer {
    uint8_t *at;
    size_t left;
};

static int give(struct writer *out, const void *from, size_t size)
{
    if (size > out->left)
        return -EMSGSIZE;
    if (size)
        memcpy(out->at, from, size);
    out->at += size;
    out->left -= size;
    return 0;
}

static int give_octets(struct writer *out, const void *from, size_t size)
{
    uint32_t count = (uint32_t)size;
    if (size > MAX_PAYLOAD || give(out, &count, 4) < 0)
        return -EMSGSIZE;
    return give(out, from, size);
}

static int give_list(struct writer *out, const struct list *list)
{
    if (give(out, &list->count, 4) < 0)
        return -EMSGSIZE;
    for (uint32_t i = 0; i < list->count; i++)
        if (give_octets(out, list->items[i], strlen(list->items[i])) < 0)
            return -EMSGSIZE;
    return 0;
}

static int give_field(struct writer *out, const struct field *field, const struct frame *frame)
{
    const char *member = (const char *)frame + field->offset;
    const struct octets *octets = (const struct octets *)(const void *)member;
    const char *string;
    switch (field->kind) {
    case STRING:
        memcpy(&string, member, sizeof string);
        return give_octets(out, string, strlen(string));
    case ITEMS:
        return give_list(out, (const struct list *)(const void *)member);
    case BYTES:
        return give_octets(out, octets->at, octets->size);
    case REST:
        return give(out, octets->at, octets->size);
    default:
        return give(out, member, widths[field->kind]);
    }
}

long frame_encode(const struct frame *frame, uint8_t *to, size_t room)
{
    const struct layout *layout = layout_of(frame->type);
    if (!layout || room < HEADER_SIZE)
        return -EMSGSIZE;
    size_t payload_room = room - HEADER_SIZE < MAX_PAYLOAD ? room - HEADER_SIZE : MAX_PAYLOAD;
    struct writer out = {to + HEADER_SIZE, payload_room};
    for (const struct field *field = layout->fields; field->name; field++)
        if (give_field(&out, field, frame) < 0)
            return -EMSGSIZE;
    size_t size = payload_room - out.left;
    put_header(to, frame->type, (uint32_t)size);
    return (long)(HEADER_SIZE + size);
}
