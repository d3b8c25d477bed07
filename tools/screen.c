/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "tools/screen.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

static struct termios before;
static volatile sig_atomic_t changed; /* the terminal must be restored to `before` */

/* Async-signal-safe. */
static void restore(void)
{
	if (changed) {
		changed = 0;
		tcsetattr(STDIN_FILENO, TCSANOW, &before);
	}
}

static void on_signal(int number)
{
	restore();
	raise(number); /* the handler was installed for one signal: now the default action */
}

void obx_screen_open(struct obx_screen *screen)
{
	struct sigaction once = { .sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND };
	struct termios keys;

	*screen = (struct obx_screen){
		.terminal = isatty(STDOUT_FILENO), .rows = UINT_MAX, .columns = UINT_MAX
	};
	/* A process in the background must not change the terminal: it would be stopped. */
	if (!screen->terminal || tcgetpgrp(STDIN_FILENO) != getpgrp() ||
		tcgetattr(STDIN_FILENO, &before) != 0)
		return;
	keys = before;
	keys.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	keys.c_cc[VMIN] = 0;
	keys.c_cc[VTIME] = 0;
	sigaction(SIGINT, &once, NULL);
	sigaction(SIGQUIT, &once, NULL);
	sigaction(SIGTERM, &once, NULL);
	sigaction(SIGHUP, &once, NULL);
	changed = 1;
	atexit(restore);
	screen->keys = tcsetattr(STDIN_FILENO, TCSANOW, &keys) == 0;
}

void obx_screen_close(struct obx_screen *screen)
{
	restore();
	screen->keys = false;
}

void obx_screen_clear(struct obx_screen *screen)
{
	struct winsize window = { .ws_row = 0 };

	if (!screen->terminal)
		return;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0) {
		screen->rows = window.ws_row ? window.ws_row : UINT_MAX;
		screen->columns = window.ws_col ? window.ws_col : UINT_MAX;
	}
	printf("\033[H\033[2J");
}

bool obx_screen_wait(struct obx_screen *screen, double seconds)
{
	/* The second one tells errors only: the other end of a pipe or a terminal is gone. */
	struct pollfd both[2] = { { .fd = screen->keys ? STDIN_FILENO : -1, .events = POLLIN },
		{ .fd = STDOUT_FILENO } };
	char key;

	if (poll(both, 2, (int)(seconds * 1e3)) < 0)
		return errno != EINTR;
	if ((both[0].revents | both[1].revents) & (POLLHUP | POLLERR | POLLNVAL))
		return true;
	return both[0].revents & POLLIN && read(STDIN_FILENO, &key, 1) == 1 &&
		(key == 'q' || key == 'Q');
}
