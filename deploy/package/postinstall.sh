#!/bin/sh
# Makes the user that the service runs as and its folders, and has systemd read the
# unit. The service is not started: first decide who may reach it (see
# /usr/share/doc/satchel/README.md).
set -e
if ! getent passwd satchel >/dev/null; then
  useradd --system --user-group --home-dir /var/lib/satchel --no-create-home --shell /usr/sbin/nologin satchel
fi
# systemd makes them when the service starts; "satchel key create" and "satchel browser
# install" need them before.
for dir in /var/lib/satchel /var/cache/satchel; do
  if [ ! -e "$dir" ]; then install -d -m 0700 -o satchel -g satchel "$dir"; fi
done
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
  systemctl try-restart satchel.service
fi
