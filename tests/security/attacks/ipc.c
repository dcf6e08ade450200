// Leaves memory behind that belongs to no process: System V shared memory, message queues and semaphores.
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>

int main(int argc, char **argv)
{
	static struct {
		long type;
		char text[8000];
	} message = {.type = 1};
	int made = 0;
	(void)argc;
	if (!strcmp(argv[1], "memory"))
		for (int id; made < 1000 && (id = shmget(IPC_PRIVATE, 1 << 20, 0600)) >= 0; made++) {
			char *at = shmat(id, NULL, 0);
			if (at == (char *)-1)
				break;
			memset(at, 1, 1 << 20);
			shmdt(at);
		}
	if (!strcmp(argv[1], "messages"))
		for (int id; (id = msgget(IPC_PRIVATE, 0600)) >= 0; made++)
			while (msgsnd(id, &message, sizeof message.text, IPC_NOWAIT) == 0)
				;
	if (!strcmp(argv[1], "semaphores"))
		while (semget(IPC_PRIVATE, 30000, 0600) >= 0)
			made++;
	printf("%d\n", made);
}
