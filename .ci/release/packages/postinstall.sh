#!/bin/sh
# The unit is known to systemd from now on. It is started by its operator, once it has its settings:
# systemctl enable --now messagehub
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	systemctl try-restart messagehub.service
fi
