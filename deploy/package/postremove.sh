#!/bin/sh
# What is left to do once the files of the package are gone. The agents' files, the
# master key and satchel.env stay, even when the package is purged: nothing could
# bring them back.
set -e
case "$1" in
  remove | purge | 0)
    if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
    ;;
esac
case "$1" in
  purge | 0) rm -rf /var/cache/satchel ;;
esac
if [ "$1" = purge ] && [ -e /var/lib/satchel ]; then
  echo "The agents are still in /var/lib/satchel, with their master key. To delete them: rm -r /var/lib/satchel && userdel satchel"
fi
