package ledger

import (
	"context"
	"log/slog"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A Contents is notified when an object is deleted in which the hub stored its own data.
type Contents interface {
	// Gone is called when the object with this key no longer exists. It may be called several times
	// for the same object, for example again after a failure.
	Gone(ctx context.Context, key string) error
}

// WatchContents returns a wrapper of objects that calls contents.Gone for each deleted object. If an
// event reports that an object in bucket no longer exists, Ingest stores the event and then calls
// Gone. The event may come from the store, from a crawl or from an inventory.
//
// If Gone fails temporarily, Ingest returns an Uncertain error for the event, although the event is
// stored. When the event is delivered again, Ingest finds a duplicate and calls Gone again. If the
// node crashes before it calls Gone, Gone is called only if the event is delivered again.
func WatchContents(objects repository.Objects, bucket string, contents Contents, logger *slog.Logger) repository.Objects {
	return &watchedContents{Objects: objects, bucket: bucket, contents: contents, logger: logger}
}

type watchedContents struct {
	repository.Objects
	bucket   string
	contents Contents
	logger   *slog.Logger
}

// Ingest implements [repository.Objects].
func (w *watchedContents) Ingest(ctx context.Context, reports []repository.ObjectReport) ([]repository.ObjectResult, error) {
	results, err := w.Objects.Ingest(ctx, reports)
	if err != nil {
		return results, err
	}
	notified := make(map[domain.ObjectName]error)
	for i := range results {
		name, r := reports[i].Name, &results[i]
		if name.Bucket() != w.bucket || r.Err != nil || r.Exists {
			continue
		}
		failure, isNotified := notified[name]
		if !isNotified {
			failure = w.notifyGone(ctx, name)
			notified[name] = failure
		}
		if failure != nil {
			*r = repository.ObjectResult{Err: failure}
		}
	}
	return results, nil
}

// notifyGone calls Gone for an object. It returns Uncertain for a temporary failure. It only logs a
// permanent failure, because a repeated event would fail again.
func (w *watchedContents) notifyGone(ctx context.Context, name domain.ObjectName) error {
	err := w.contents.Gone(ctx, name.Key())
	switch kind := domain.KindOf(err); {
	case err == nil:
		return nil
	case kind == domain.Busy || kind == domain.Unavailable || kind == domain.Uncertain || ctx.Err() != nil:
		return domain.Errorf(domain.Uncertain, "the event is stored, and the hub does not know of the deleted content: %w", err)
	}
	w.logger.LogAttrs(ctx, slog.LevelError, "the hub does not know that a content was deleted; the next download of its bundle finds that it is missing",
		slog.String("object", name.Key()), slog.String("error", err.Error()))
	return nil
}
