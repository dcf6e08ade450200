#define _GNU_SOURCE
#include "output.h"

#include <string.h>
#include <sys/mman.h>

enum { FIRST_ROOM = 64 << 10 };

static size_t bits_size(size_t octets)
{
    return octets / 8 + 1;
}

/* Not on the heap: what is mapped for itself can be left out of every fork. */
static uint8_t *map(size_t size)
{
    uint8_t *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return NULL;
    madvise(at, size, MADV_DONTFORK);
    return at;
}

static void store_free(struct store *store)
{
    if (store->data)
        munmap(store->data, store->room + bits_size(store->room));
    store->data = NULL;
    store->room = store->used = 0;
}

/* Only ever grows before it is full, thus before it wraps. */
static int store_grow(struct store *store, size_t wanted)
{
    size_t room = store->room ? store->room : FIRST_ROOM;
    while (room < wanted)
        room *= 2;
    if (room > store->capacity)
        room = store->capacity;
    if (room <= store->room)
        return 0;
    uint8_t *data = map(room + bits_size(room));
    if (!data)
        return -1;
    if (store->data) {
        memcpy(data, store->data, store->used);
        memcpy(data + room, store->is_error, bits_size(store->used));
        munmap(store->data, store->room + bits_size(store->room));
    }
    store->data = data;
    store->is_error = data + room;
    store->room = room;
    return 0;
}

static int bit_at(const struct store *store, size_t index)
{
    return store->is_error[index / 8] >> (index % 8) & 1;
}

static void mark(struct store *store, size_t index, size_t size, int is_error)
{
    for (; size && index % 8; index++, size--)
        if (is_error)
            store->is_error[index / 8] |= (uint8_t)(1u << (index % 8));
        else
            store->is_error[index / 8] &= (uint8_t)~(1u << (index % 8));
    memset(store->is_error + index / 8, is_error ? 0xff : 0, size / 8);
    index += size / 8 * 8;
    for (size %= 8; size; index++, size--)
        if (is_error)
            store->is_error[index / 8] |= (uint8_t)(1u << (index % 8));
        else
            store->is_error[index / 8] &= (uint8_t)~(1u << (index % 8));
}

/* Copies to where `offset` belongs in the ring. */
static void store_write(struct store *store, uint64_t offset, const uint8_t *data, size_t size, int is_error)
{
    while (size) {
        size_t index = (size_t)((offset - store->origin) % store->capacity);
        size_t part = store->room - index < size ? store->room - index : size;
        memcpy(store->data + index, data, part);
        mark(store, index, part, is_error);
        offset += part;
        data += part;
        size -= part;
    }
}

void output_open(struct output *output, uint64_t limit)
{
    memset(output, 0, sizeof *output);
    output->tail.capacity = (size_t)(limit / 2);
    output->head_size = limit - limit / 2;
}

void output_close(struct output *output)
{
    store_free(&output->head);
    store_free(&output->tail);
}

void output_pass(struct output *output, uint64_t size)
{
    output->total += size;
    output->passed = output->total;
}

uint64_t output_budget(const struct output *output, int unlimited)
{
    if (unlimited)
        return UINT64_MAX;
    return output->passed < output->head_size ? output->head_size - output->passed : 0;
}

void output_keep_from_here(struct output *output, int unlimited)
{
    uint64_t budget = unlimited ? output->head_size : output_budget(output, 0);
    output->head.capacity = output->tail.used ? 0 : (size_t)budget;
    output->head.start = output->total;
}

static size_t add_to_head(struct output *output, const uint8_t *data, size_t size, int is_error)
{
    struct store *head = &output->head;
    size_t part = head->capacity - head->used < size ? head->capacity - head->used : size;
    if (!part || output->tail.used)
        return 0;
    if (store_grow(head, head->used + part) < 0)
        return 0;
    memcpy(head->data + head->used, data, part);
    mark(head, head->used, part, is_error);
    head->used += part;
    return part;
}

static void count_dropped(struct output *output, uint64_t from, uint64_t to)
{
    if (from < output->passed)
        from = output->passed;
    if (to > from)
        output->dropped += to - from;
}

/* Keeps the end of `data`; the caller counts it in `total`. */
static void add_to_tail(struct output *output, const uint8_t *data, size_t size, int is_error)
{
    struct store *tail = &output->tail;
    uint64_t end = output->total + size;
    size_t part = size < tail->capacity ? size : tail->capacity;
    size_t wanted = tail->used + part < tail->capacity ? tail->used + part : tail->capacity;
    if (!tail->used)
        tail->start = tail->origin = output->total;
    if (!part || store_grow(tail, wanted) < 0) {
        count_dropped(output, tail->used ? tail->start : output->total, end);
        tail->used = 0;
        return;
    }
    uint64_t start = end - wanted > tail->start ? end - wanted : tail->start;
    count_dropped(output, tail->start, start);
    store_write(tail, end - part, data + (size - part), part, is_error);
    tail->start = start;
    tail->used = (size_t)(end - start);
}

void output_add(struct output *output, const uint8_t *data, size_t size, int is_error)
{
    size_t part = add_to_head(output, data, size, is_error);
    output->total += part;
    if (part == size)
        return;
    add_to_tail(output, data + part, size - part, is_error);
    output->total += size - part;
}

void output_add_passed(struct output *output, const uint8_t *data, size_t size, int is_error)
{
    add_to_tail(output, data, size, is_error);
    output_pass(output, size);
}

static struct piece piece_of(const struct store *store, size_t index, size_t most)
{
    struct piece piece = {.data = store->data + index, .is_error = bit_at(store, index)};
    uint8_t same = piece.is_error ? 0xff : 0;
    while (piece.size < most) {
        size_t next = index + piece.size;
        if (next % 8 == 0 && most - piece.size >= 8 && store->is_error[next / 8] == same)
            piece.size += 8;
        else if (bit_at(store, next) == piece.is_error)
            piece.size++;
        else
            break;
    }
    return piece;
}

static struct piece head_piece(const struct store *head, uint64_t offset, size_t most)
{
    size_t index = (size_t)(offset - head->start);
    return piece_of(head, index, head->used - index < most ? head->used - index : most);
}

static struct piece tail_piece(const struct store *tail, uint64_t offset, size_t most)
{
    size_t index = (size_t)((offset - tail->origin) % tail->capacity);
    size_t left = (size_t)(tail->start + tail->used - offset);
    if (left > tail->room - index)
        left = tail->room - index;
    return piece_of(tail, index, left < most ? left : most);
}

struct piece output_at(const struct output *output, uint64_t offset, size_t most)
{
    const struct store *head = &output->head, *tail = &output->tail;
    uint64_t gap = 0;
    if (head->used && offset < head->start) {
        gap = head->start - offset;
        offset = head->start;
    }
    if (head->used && offset < head->start + head->used) {
        struct piece piece = head_piece(head, offset, most);
        piece.gap = gap;
        return piece;
    }
    uint64_t next = tail->used ? tail->start : output->total;
    if (offset < next) {
        gap += next - offset;
        offset = next;
    }
    if (offset >= output->total)
        return (struct piece){.gap = gap};
    struct piece piece = tail_piece(tail, offset, most);
    piece.gap = gap;
    return piece;
}
