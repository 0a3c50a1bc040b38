#!/bin/sh
# An upgrade calls this, too: with the argument upgrade (Debian) or 1 (Red Hat). The hub runs on then,
# until the new version restarts it.
set -e
case "${1:-}" in
upgrade | 1) exit 0 ;;
esac
if [ -d /run/systemd/system ]; then
	systemctl disable --now messagehub.service || true
fi
