/* Raw streams: into the sandbox (CONNECT), and out of it (EGRESS). */
#ifndef STREAMS_H
#define STREAMS_H

#include "conn.h"

int egress_open(struct keeper *keeper);
void stream_connect(struct conn *conn, struct frame *request);
void stream_egress(struct conn *conn, struct frame *request);

#endif
