/* notify.h - tell systemd how far we are (sd_notify's datagram, see sd_notify(3)). */
#ifndef WFSD_NOTIFY_H
#define WFSD_NOTIFY_H

/* Sends the lines to $NOTIFY_SOCKET; does nothing when that is not set. */
void wfsd_notify(const char *lines);

#endif
