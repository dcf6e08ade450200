/* The ends that come by themselves, also where nobody is there to bring them: too long idle, too old. */
#define _GNU_SOURCE
#include "keeper.h"

#include <sys/stat.h>
#include <unistd.h>

/* A folder of that name where the host looks tells why; one that is there already tells it as well. */
static void end(struct keeper *keeper, const char *reason)
{
    int fd = keeper->options.end_fd >= 0 ? keeper->options.end_fd : keeper->options.runs_fd;
    if (fd >= 0)
        mkdirat(fd, reason, 0755);
    end_all(keeper);
}

static void on_life(struct timer *timer)
{
    end(OWNER(struct keeper, life, timer), "end-life");
}

static void on_idle(struct timer *timer)
{
    struct keeper *keeper = OWNER(struct keeper, idle, timer);
    uint64_t now = now_ms(), since = keeper->active ? now : keeper->last_active_ms;
    if (now >= since + keeper->options.idle_ms)
        end(keeper, "end-idle");
    else
        timer_set(&keeper->loop, timer, since + keeper->options.idle_ms);
}

void life_begin(struct keeper *keeper)
{
    keeper->life.due = on_life;
    keeper->idle.due = on_idle;
    if (keeper->options.life_ms)
        timer_set(&keeper->loop, &keeper->life, now_ms() + keeper->options.life_ms);
    if (keeper->options.idle_ms)
        timer_set(&keeper->loop, &keeper->idle, now_ms() + keeper->options.idle_ms);
}
