/* The output of a run that is kept: its head and its tail, addressed by offset. */
#ifndef OUTPUT_H
#define OUTPUT_H

#include <stddef.h>
#include <stdint.h>

/* Octets with a bit each that says which stream they came from. */
struct store {
    uint8_t *data;
    uint8_t *is_error;
    size_t capacity, room, used; /* `room` is allocated, at most `capacity` */
    uint64_t start;              /* offset of the oldest octet */
    uint64_t origin;             /* offset that stands at index 0 */
};

struct output {
    struct store head, tail;
    uint64_t head_size; /* what the head may take, or a client directly */
    uint64_t total;   /* octets that came */
    uint64_t passed;  /* octets that the first client got, without being kept */
    uint64_t dropped; /* octets that nobody can have any more */
};

struct piece {
    uint64_t gap; /* octets missing before it */
    const uint8_t *data;
    size_t size;
    int is_error;
};

/* Half of `limit` octets is for the head, half for the tail. */
void output_open(struct output *output, uint64_t limit);
void output_close(struct output *output);

/* `size` octets were handed to the first client directly. */
void output_pass(struct output *output, uint64_t size);

/* The same, and they are kept for others that follow. */
void output_add_passed(struct output *output, const uint8_t *data, size_t size, int is_error);

/* How much may still be handed on directly. */
uint64_t output_budget(const struct output *output, int unlimited);

/* There is no first client (any more): what follows is kept. */
void output_keep_from_here(struct output *output, int unlimited);

void output_add(struct output *output, const uint8_t *data, size_t size, int is_error);

/* The next piece at `offset`, of at most `most` octets; size 0 at the end. */
struct piece output_at(const struct output *output, uint64_t offset, size_t most);

#endif
