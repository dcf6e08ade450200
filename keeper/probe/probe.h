// What `cloche doctor` runs in a box to try its promises. Each try prints lines of `name: answer`.
#pragma once

// The answer of one attempt: the error's name, or `done`.
void say(const char *name, long rc);

// Calls that the filter must not let through.
void try_calls(void);

// Each takes of one thing until it is refused or has `most` of it, and prints how much it got.
// Where a limit does not hold nothing on this machine may suffer: so each has an end of its own.
int take_memory(int most_mib);
int take_disk(int most_mib, const char *folder);
int take_files(int most, const char *folder);
int take_processes(int most);
