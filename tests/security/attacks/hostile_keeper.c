// A keeper that has been taken over: PID 1 of a box, listening where the real one would. WAY says what it does.
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LISTENER = 3, STARTED = 64, STDOUT = 65, GAP = 67, EXIT = 68, DATA = 71, END = 72, ENTRY = 73, PROCESS = 75 };
enum { GARBAGE = 1, LENGTH, SHORT, OVERLONG, UNKNOWN, ORDER, EXIT_CODE, FLOOD, GAPS, CUT, STALL, DRIP, REPLIES, CONTENT };

static uint8_t frame[1 << 20];

// Hands over the octets, or ends: the client has hung up.
static void put(int fd, const void *data, size_t size)
{
	for (size_t sent = 0; sent < size;) {
		ssize_t n = send(fd, (const char *)data + sent, size - sent, MSG_NOSIGNAL);
		if (n <= 0)
			_exit(0);
		sent += (size_t)n;
	}
}

static void put_frame(int fd, uint8_t type, const void *payload, uint32_t size)
{
	uint8_t header[5] = {(uint8_t)size, (uint8_t)(size >> 8), (uint8_t)(size >> 16), (uint8_t)(size >> 24), type};
	put(fd, header, sizeof header);
	put(fd, payload, size);
}

static void start(int fd)
{
	uint8_t started[20] = {2};
	put_frame(fd, STARTED, started, sizeof started);
}

static void answer(int fd)
{
	static const uint8_t four_gigabytes[] = {0xff, 0xff, 0xff, 0xff, STDOUT, 'a'};
	static const uint8_t over[] = {1, 0, 16, 0, STDOUT};
	uint8_t exit_frame[60] = {0xff, 0x7f};
	uint8_t entry[54 + 1000] = {'f'};
	switch (WAY) {
	case GARBAGE:
		memset(frame, 0xa5, sizeof frame);
		for (;;)
			put(fd, frame, sizeof frame);
	case LENGTH:
		start(fd);
		put(fd, four_gigabytes, sizeof four_gigabytes);
		break;
	case OVERLONG:
		start(fd);
		put(fd, over, sizeof over);
		break;
	case SHORT:
		put_frame(fd, STARTED, frame, 19);
		break;
	case UNKNOWN:
		put_frame(fd, 200, frame, 4);
		break;
	case ORDER:
		put_frame(fd, EXIT, exit_frame, sizeof exit_frame);
		break;
	case EXIT_CODE:
		start(fd);
		put_frame(fd, EXIT, exit_frame, sizeof exit_frame);
		break;
	case FLOOD:
		start(fd);
		for (;;)
			put_frame(fd, STDOUT, frame, sizeof frame);
	case GAPS:
		start(fd);
		for (uint32_t i = 0; i + 13 <= sizeof frame; i += 13) {
			static const uint8_t gap[13] = {8, 0, 0, 0, GAP, 1};
			memcpy(frame + i, gap, sizeof gap);
		}
		for (;;)
			put(fd, frame, sizeof frame / 13 * 13);
	case CUT:
		start(fd);
		put(fd, four_gigabytes, 3);
		_exit(0);
	case DRIP:
		start(fd);
		put(fd, over, 1);
		break;
	case REPLIES:
		// The name, behind fixed fields of 45 octets, takes the rest.
		entry[45] = (uint8_t)(1000 & 255);
		entry[46] = (uint8_t)(1000 >> 8);
		for (;;)
			put_frame(fd, ENTRY, entry, 45 + 4 + 1000 + 4);
	case CONTENT:
		for (;;)
			put_frame(fd, DATA, frame, sizeof frame);
	default:
		break;
	}
	for (;;) // the client waits
		if (recv(fd, frame, sizeof frame, 0) <= 0)
			_exit(0);
}

int main(void)
{
	signal(SIGCHLD, SIG_IGN);
	for (;;) {
		int fd = accept(LISTENER, NULL, NULL);
		if (fd < 0 || fork() > 0) {
			close(fd);
			continue;
		}
		if (recv(fd, frame, sizeof frame, 0) <= 0)
			_exit(0);
		answer(fd);
	}
}
