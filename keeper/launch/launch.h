// What the steps of the launcher share.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

enum { MAX_BINDS = 64, MAX_CEILINGS = 16, MAX_ENTERED = 8, MAX_HIDDEN = 2, IDS = 65536 };

struct bind {
	const char *source;
	const char *target; // inside the box, without the leading slash
	bool writable;
	bool owned; // its owner is the box's user inside; else only what everyone may read can be read
	bool fresh; // the target is made in the box's own layer
};

struct ceiling {
	int number;
	rlim_t most;
};

struct plan {
	const char *folder; // the box's own; the working directory
	const char *mounts; // a host folder with disk, lower and root to mount on, seen only by us
	const char *lower;
	const char *pids_cgroup; // v1: the box's folder in the pids hierarchy
	const char *tree_cgroup; // v2: the box's folder
	const char *hidden[MAX_HIDDEN]; // folders of which the runtime sees an empty one
	int hidden_count;
	const char *read_only; // a folder where the runtime can't make anything, nor below
	uint32_t first_id;
	uint32_t user; // the id inside of the box's user
	uint32_t pids; // the limit in pids_cgroup
	struct bind binds[MAX_BINDS];
	int bind_count;
	struct ceiling ceilings[MAX_CEILINGS];
	int ceiling_count;
	bool map_only; // nothing but a user namespace in which the caller is root
	bool rootless; // the caller is no root: everything happens in a user namespace of the caller's
	char *uid_map, *gid_map; // of that namespace, for newuidmap and newgidmap; NULL: the caller alone
	const char *entered[MAX_ENTERED]; // folders of cgroups
	int entered_count;
	const char *end; // the folder where the keeper tells why it ended
	uint32_t disk_mb, inodes; // of a disk in memory
	char **runtime;
};

// Names what is about to be done; an error then says so. --fail-at makes the nth fail.
void begin(const char *step);
// Prints the step and errno, and ends: nothing that was made here outlives the process
// but files and cgroups in known places, which the caller removes.
_Noreturn void fail(const char *detail);
// `result` where it is not negative.
int must(int result, const char *detail);

// Into the file of that name.
void write_text(int folder, const char *name, const char *text);

// Ends when that parent does.
void follow(pid_t parent);

void make_network(void);
// What is on disk as ids 0 to 65535 is the box's range.
int open_range_mapping(uint32_t first_id);
// What is on disk as that user's and group's is `outside`'s; all else is nobody's.
int open_owner_mapping(uint32_t uid, uint32_t gid, uint32_t outside);
void place_user_namespace(const struct plan *plan, int mapping);
int mount_disk(int id_mapping);
void mount_rootfs(const struct plan *plan, int disk, int id_mapping);
int open_runs(const struct plan *plan);
void enter_tree(const struct plan *plan);
int open_pids(const struct plan *plan);
void enter_cgroups(const struct plan *plan);
void enter_user_namespace(const struct plan *plan);
int mount_memory_disk(const struct plan *plan);
int open_end(const struct plan *plan);
