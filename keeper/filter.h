#ifndef KEEPER_FILTER_H
#define KEEPER_FILTER_H

/* Takes from this process, for good, what the box's profile can't: 0, or -1 with errno. */
int filter_install(void);

#endif
