/* Functions that the tests' first programs of guests share. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/reboot.h>
#include <sys/wait.h>
#include <unistd.h>

static void fail(const char *what)
{
	printf("@FAIL %s: %s\n", what, strerror(errno));
	reboot(RB_POWER_OFF);
}

static void put(const char *path, const char *text)
{
	int file = open(path, O_WRONLY);

	if (file < 0 || write(file, text, strlen(text)) < 0)
		fail(path);
	close(file);
}

static void run(char *program, ...)
{
	char *arguments[16] = { program };
	int count = 1, status;
	va_list rest;

	va_start(rest, program);
	while ((arguments[count] = va_arg(rest, char *)))
		count++;
	va_end(rest);
	if (!fork()) {
		execv(program, arguments);
		_exit(1);
	}
	if (wait(&status) < 0 || status)
		fail(program);
}
