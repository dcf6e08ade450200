/* The command line. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include "keeper.h"

/* Returns 0, or -1 after it has said on standard error what is wrong. */
int options_parse(struct options *options, int argc, char **argv);

#endif
