#define _GNU_SOURCE
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

static const char usage[] =
    "usage: keeper (--listen-fd N | --bind PATH) [--runs-fd N] [--join-fd N]... [--root-caps HEX]\n"
    "              [--egress-port P] [--uid-only N] [--idle-ms N] [--life-ms N] [--end-fd N] [--host]\n"
    "              [--name TEXT]\n";

static const struct option table[] = {
    {"listen-fd", required_argument, NULL, 'l'}, {"bind", required_argument, NULL, 'b'},
    {"runs-fd", required_argument, NULL, 'r'},   {"join-fd", required_argument, NULL, 'j'},
    {"root-caps", required_argument, NULL, 'c'}, {"egress-port", required_argument, NULL, 'e'},
    {"uid-only", required_argument, NULL, 'u'},  {"host", no_argument, NULL, 'h'},
    {"idle-ms", required_argument, NULL, 'i'},   {"life-ms", required_argument, NULL, 't'},
    {"end-fd", required_argument, NULL, 'd'},    {"name", required_argument, NULL, 'n'},
    {NULL, 0, NULL, 0},
};

static int parse_number(const char *name, const char *text, int base, unsigned long long most, unsigned long long *to)
{
    char *end;
    errno = 0;
    *to = strtoull(text, &end, base);
    if (!errno && *text != '-' && end != text && !*end && *to <= most)
        return 0;
    fprintf(stderr, "keeper: --%s is '%s'; expected a number up to %llu\n", name, text, most);
    return -1;
}

static unsigned long long most_of(int option)
{
    switch (option) {
    case 'c':
        return ~0ull;
    case 'e':
        return 65535;
    case 'u':
        return 0xfffffffeu;
    case 'i':
    case 't':
        return 1000ull * 86400 * 365 * 100;
    default:
        return 1u << 20;
    }
}

static int take(struct options *options, const struct option *option, const char *text)
{
    unsigned long long number = 0;
    unsigned long long most = most_of(option->val);
    if (option->val == 'b') {
        options->bind_path = text;
        return 0;
    }
    if (option->val == 'n')
        return 0; /* for those who look for it among all processes */
    if (option->val == 'h') {
        options->is_host = 1;
        return 0;
    }
    if (parse_number(option->name, text, option->val == 'c' ? 16 : 10, most, &number) < 0)
        return -1;
    switch (option->val) {
    case 'l':
        options->listen_fd = (int)number;
        return 0;
    case 'r':
        options->runs_fd = (int)number;
        return 0;
    case 'c':
        options->root_caps = number;
        return 0;
    case 'i':
        options->idle_ms = number;
        return 0;
    case 't':
        options->life_ms = number;
        return 0;
    case 'd':
        options->end_fd = (int)number;
        return 0;
    case 'e':
        options->egress_port = (int)number;
        return 0;
    case 'u':
        options->uid_only = (long long)number;
        return 0;
    default:
        if (options->joins == MAX_JOINS) {
            fprintf(stderr, "keeper: --join-fd is given more than %d times\n", MAX_JOINS);
            return -1;
        }
        options->join_fds[options->joins++] = (int)number;
        return 0;
    }
}

int options_parse(struct options *options, int argc, char **argv)
{
    int index, found;
    *options = (struct options){.listen_fd = -1, .runs_fd = -1, .end_fd = -1, .uid_only = -1};
    while ((found = getopt_long(argc, argv, "", table, &index)) != -1)
        if (found == '?' || take(options, &table[index], optarg) < 0) {
            fputs(usage, stderr);
            return -1;
        }
    if (optind == argc && (options->listen_fd >= 0) != (options->bind_path != NULL))
        return 0;
    fputs(usage, stderr);
    return -1;
}
