/*
 * Reads lines of "NAME HEX" on standard input, HEX being whole frames, and prints for each its fields as
 * JSON and what encoding them gives, or "error: …". For tests/keeper/test_frames.py.
 */
#define _GNU_SOURCE
#include "frames.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_octets(const uint8_t *at, size_t size)
{
    putchar('"');
    for (size_t i = 0; i < size; i++)
        printf("\\u%04x", at[i]);
    putchar('"');
}

static void print_list(const struct list *list)
{
    putchar('[');
    for (uint32_t i = 0; i < list->count; i++) {
        printf("%s", i ? "," : "");
        print_octets((const uint8_t *)list->items[i], strlen(list->items[i]));
    }
    putchar(']');
}

static void print_value(const struct field *field, const struct frame *frame)
{
    const void *member = (const char *)frame + field->offset;
    const struct octets *octets = member;
    const char *const *string = member;
    switch (field->kind) {
    case U8:
        printf("%u", *(const uint8_t *)member);
        break;
    case U16:
        printf("%u", *(const uint16_t *)member);
        break;
    case U32:
        printf("%u", *(const uint32_t *)member);
        break;
    case U64:
        printf("%llu", (unsigned long long)*(const uint64_t *)member);
        break;
    case I32:
        printf("%d", *(const int32_t *)member);
        break;
    case I64:
        printf("%lld", (long long)*(const int64_t *)member);
        break;
    case STRING:
        print_octets((const uint8_t *)*string, strlen(*string));
        break;
    case ITEMS:
        print_list(member);
        break;
    case BYTES:
    case REST:
        print_octets(octets->at, octets->size);
        break;
    }
}

static void print_frame(const struct frame *frame)
{
    const char *comma = "";
    putchar('{');
    for (const struct field *field = layout_of(frame->type)->fields; field->name; field++) {
        if (strcmp(field->name, "version") == 0)
            continue;
        printf("%s\"%s\":", comma, field->name);
        print_value(field, frame);
        comma = ",";
    }
    putchar('}');
}

static void print_again(const struct frame *frame)
{
    static uint8_t buffer[HEADER_SIZE + MAX_PAYLOAD];
    long size = frame_encode(frame, buffer, sizeof buffer);
    putchar(' ');
    for (long i = 0; i < size; i++)
        printf("%02x", buffer[i]);
}

/* The payload gets an allocation of its very size, so that the sanitizer sees the first octet too many. */
static void check(const uint8_t *data, size_t size)
{
    static char *pool[ITEM_POOL];
    struct frame frame = {0};
    if (size < HEADER_SIZE || get_u32(data) != size - HEADER_SIZE) {
        printf("error: length\n");
        return;
    }
    uint8_t *payload = malloc(size - HEADER_SIZE);
    if (size > HEADER_SIZE)
        memcpy(payload, data + HEADER_SIZE, size - HEADER_SIZE);
    int rc = frame_decode(&frame, data[4], payload, size - HEADER_SIZE, pool);
    if (rc < 0) {
        printf("error: %s", strerrorname_np(-rc));
    } else {
        printf("%s ", layout_of(frame.type)->name);
        print_frame(&frame);
        print_again(&frame);
    }
    putchar('\n');
    free(payload);
}

int main(void)
{
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, stdin) > 0) {
        char *hex = strchr(line, ' ');
        if (!hex)
            continue;
        size_t count = strspn(++hex, "0123456789abcdef") / 2;
        uint8_t *data = malloc(count + 1);
        for (size_t i = 0; i < count; i++) {
            unsigned octet;
            sscanf(hex + 2 * i, "%2x", &octet);
            data[i] = (uint8_t)octet;
        }
        check(data, count);
        free(data);
    }
    free(line);
    return 0;
}
