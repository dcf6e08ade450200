/* From a request frame to what carries it out. */
#ifndef REQUESTS_H
#define REQUESTS_H

#include "conn.h"

/* True where the request has to stay where it is until a worker is free. */
int request_must_wait(const struct conn *conn, uint8_t type);

void handle_request(struct conn *conn, uint8_t type, uint8_t *payload, uint32_t size);

#endif
