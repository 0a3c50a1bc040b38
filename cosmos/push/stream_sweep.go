package push

import (
	"context"
	"fmt"
	"time"
)

// Each day has a folder for large payloads. A sweep removes the folders of the last sweptDays days that
// are older than the retention plus sweepMargin. The margin allows for clock differences and for reads
// that are still running. Several days are removed because a sweep may have been missed.
const (
	sweepMargin = 2 * 24 * time.Hour
	sweptDays   = 30
)

// Sweep removes large payloads whose retention has passed. Their entries are no longer returned, even if
// the documents with the entries still exist. If it crashes, the next sweep removes the remaining
// payloads.
func (s *Store) Sweep(ctx context.Context) error {
	last := s.opts.Clock().Add(-s.opts.Retention - sweepMargin)
	for i := range sweptDays {
		folder := objectFolder(last.AddDate(0, 0, -i))
		if err := s.content.DeleteFolder(ctx, folder); err != nil {
			return fmt.Errorf("sweep %s: %w", folder, err)
		}
	}
	return nil
}
