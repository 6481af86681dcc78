#!/bin/sh
# Stops the service when the package goes, not when it is upgraded.
set -e
case "$1" in
  remove | 0) if [ -d /run/systemd/system ]; then systemctl disable --now satchel.service; fi ;;
esac
