#!/bin/sh
# Makes the user that the service runs as, and has systemd read the unit. The
# service is not started: first decide who may reach it (see
# /usr/share/doc/satchel/README.md).
set -e
if ! getent passwd satchel >/dev/null; then
  useradd --system --user-group --home-dir /var/lib/satchel --no-create-home --shell /usr/sbin/nologin satchel
fi
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
  systemctl try-restart satchel.service
fi
