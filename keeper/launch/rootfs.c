// The box's root: the image below, the box's own disk above, and what is bound into it.
#define _GNU_SOURCE
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

static void place(int mount, const char *name)
{
	must(move_mount(mount, "", AT_FDCWD, name, MOVE_MOUNT_F_EMPTY_PATH), name);
	close(mount);
}

// In a namespace of less privilege what is mounted below comes along, or nothing may.
static unsigned int below(const struct plan *plan)
{
	return plan->rootless ? AT_RECURSIVE : 0;
}

static int clone_mount(const struct plan *plan, const char *source)
{
	return must(open_tree(AT_FDCWD, source, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | below(plan)), source);
}

// Its path was checked before, and what lies above it may be writable in another box: a link
// that was put there since is not followed.
static int clone_mount_of_owner(const struct plan *plan, const char *source)
{
	struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS};
	int folder = must((int)syscall(SYS_openat2, AT_FDCWD, source, &how, sizeof how), source);
	unsigned int flags = AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | below(plan);
	int tree = must(open_tree(folder, "", flags), source);
	close(folder);
	return tree;
}

static _Noreturn void refuse_mapping(const char *source)
{
	char detail[PATH_MAX + 128];
	snprintf(detail, sizeof detail,
		 "%s lies on a file system without id-mapped mounts (tmpfs has them from Linux 6.3 on); "
		 "move it to ext4, xfs or btrfs",
		 source);
	fail(detail);
}

// Neither devices nor setuid programs work on it; `id_mapping` may be -1 for none.
static void restrict_mount(const struct plan *plan, int tree, bool writable, int id_mapping, const char *source)
{
	struct mount_attr wanted = {
		.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | (writable ? 0 : MOUNT_ATTR_RDONLY),
		.propagation = MS_PRIVATE,
	};
	if (id_mapping >= 0) {
		wanted.attr_set |= MOUNT_ATTR_IDMAP;
		wanted.userns_fd = (uint64_t)id_mapping;
	}
	if (mount_setattr(tree, "", AT_EMPTY_PATH | below(plan), &wanted, sizeof wanted) == 0)
		return;
	if (errno == EINVAL && id_mapping >= 0)
		refuse_mapping(source);
	fail(source);
}

// In the box's own layer a name is what it was made as: an image cannot put a link there.
static void make_targets(const struct plan *plan, int disk)
{
	int upper = must(openat(disk, "upper", O_RDONLY | O_DIRECTORY | O_CLOEXEC), "upper");
	for (int i = 0; i < plan->bind_count; i++) {
		if (!plan->binds[i].fresh)
			continue;
		if (mkdirat(upper, plan->binds[i].target, 0755) < 0 && errno != EEXIST)
			fail(plan->binds[i].target);
	}
	close(upper);
}

static int open_mapping_of_owner(const struct plan *plan, int tree, const char *source)
{
	struct stat status;
	must(fstat(tree, &status), source);
	int mapping = open_owner_mapping(status.st_uid, status.st_gid, plan->first_id + plan->user);
	begin("bind folders into the box");
	return mapping;
}

static void bind(const struct plan *plan, const struct bind *bind, int root)
{
	int tree = bind->owned ? clone_mount_of_owner(plan, bind->source) : clone_mount(plan, bind->source);
	bool is_mapped = bind->owned && !plan->rootless; // else the namespace itself does that
	int mapping = is_mapped ? open_mapping_of_owner(plan, tree, bind->source) : -1;
	restrict_mount(plan, tree, bind->writable, mapping, bind->source);
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS,
	};
	int target = must((int)syscall(SYS_openat2, root, bind->target, &how, sizeof how), bind->target);
	must(move_mount(tree, "", target, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH), bind->target);
	if (mapping >= 0)
		close(mapping);
	close(target);
	close(tree);
}

// On an id-mapped layer only ids of the range exist: whoever makes something there, or
// mounts an overlay that will, must be one of them. No capability is lost on the way.
static void act_as(uint32_t id)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct capabilities[2];
	must((int)syscall(SYS_capget, &header, capabilities), "capget");
	setfsgid(id);
	setfsuid(id);
	must((int)syscall(SYS_capset, &header, capabilities), "capset");
}

static int mount_overlay(const struct plan *plan)
{
	char options[] = "lowerdir=lower,upperdir=disk/upper,workdir=disk/work,userxattr";
	if (!plan->rootless)
		*strrchr(options, ',') = '\0'; // root keeps its marks where nobody else can
	begin("lay the disk over the image");
	must(mount("overlay", "root", "overlay", MS_NOSUID | MS_NODEV | MS_NOATIME,
		   options),
	     "overlay");
	int root = must(open("root", O_PATH | O_DIRECTORY | O_CLOEXEC), "root");
	struct statvfs status;
	must(fstatvfs(root, &status), "root");
	if (status.f_flag & ST_RDONLY) { // the kernel's answer to a layer that it cannot use
		errno = EROFS;
		fail("overlay");
	}
	return root;
}

void mount_rootfs(const struct plan *plan, int disk, int id_mapping)
{
	begin("make the image visible");
	int lower = clone_mount(plan, plan->lower);
	restrict_mount(plan, lower, false, id_mapping, plan->lower);
	must(chdir(plan->mounts), plan->mounts);
	if (!plan->rootless)
		act_as(plan->first_id);
	make_targets(plan, disk);
	place(disk, "disk");
	place(lower, "lower");
	int root = mount_overlay(plan);
	if (!plan->rootless)
		act_as(0);

	begin("bind folders into the box");
	for (int i = 0; i < plan->bind_count; i++)
		bind(plan, &plan->binds[i], root);
	close(root);
	must(chdir("/"), "/");
}
