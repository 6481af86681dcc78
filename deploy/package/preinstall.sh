#!/bin/sh
# Makes the user that the service runs as.
set -e
if ! getent passwd satchel >/dev/null; then
  useradd --system --user-group --home-dir /var/lib/satchel --no-create-home --shell /usr/sbin/nologin satchel
fi
