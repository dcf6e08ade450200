/* A terminal for a run. */
#ifndef PTY_H
#define PTY_H

#include "keeper.h"

/* Opens a terminal that belongs to the user; returns 0 or a negative errno. */
int pty_open(const struct keeper *keeper, uint32_t uid, uint32_t gid, int *controller, int *terminal);

int pty_resize(int controller, uint16_t rows, uint16_t cols);

/* The character that ends the input, or -1 where the terminal is in raw mode. */
int pty_end_character(int controller);

#endif
