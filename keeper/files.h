/* What workers share about files. */
#ifndef FILES_H
#define FILES_H

#include "worker.h"

#include <sys/stat.h>

/* The letter of ENTRY.kind. */
char entry_kind(mode_t mode);

/* `file` below `dir` is what a link's target is read from. */
void send_entry(struct work *work, int dir, const char *file, const struct stat *stat, struct octets name);

#endif
