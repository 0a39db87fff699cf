/* hand_over.h - descriptors sent from process to process (unix(7), SCM_RIGHTS). */
#ifndef WFSD_HAND_OVER_H
#define WFSD_HAND_OVER_H

#include <stdbool.h>

/* With one byte, over a connected UNIX socket. fd stays ours. 0 or the errno. */
int wfsd_send_fd(int socket, int fd);
/* Receives one byte and the descriptor that came with it, which is for the caller to close; -1: none came. */
int wfsd_receive_fd(int socket);
/* Whether the other end is a process of our own user, or of root. */
bool wfsd_peer_is_trusted(int socket);

#endif
