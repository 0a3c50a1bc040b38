package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/messagehub/messagehub/cmd/node"
)

// logReady logs the record "ready", with the hub's addresses. Supervisors and
// scripts wait for this record, so it is logged at every log level.
func logReady(ctx context.Context, logger *slog.Logger, n *node.Node) error {
	record := slog.NewRecord(time.Now(), slog.LevelInfo, "ready", 0)
	record.Add("url", n.URL(), "admin_url", n.AdminURL())
	return logger.Handler().Handle(ctx, record)
}
