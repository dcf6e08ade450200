/* Two sockets joined, octets moving both ways without being looked at. */
#ifndef RELAY_H
#define RELAY_H

#include "keeper.h"

/* Takes over both descriptors; `early` has come from `client` already. Closes them where it fails. */
void relay_start(struct keeper *keeper, int client, int peer, const uint8_t *early, size_t size, int is_counted);

#endif
