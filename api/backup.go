package api

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
)

// backup responds with an archive of all data. Only one backup runs at a time. It ends early if its
// client disconnects or the server drains. Readers of archives reject a truncated archive.
func (s *Server) backup(w http.ResponseWriter, r *http.Request) error {
	switch {
	case s.opts.NoBackup != "":
		return refuse(noRoute, "This hub has no backup: %s.", s.opts.NoBackup)
	case s.opts.Backup == nil:
		return refuse(noRoute, "The store of this hub cannot be backed up.")
	case s.draining.Err() != nil:
		return refuse(notReady, "The hub is about to stop; back it up when it runs again.")
	case !s.backups.TryAcquire(1):
		return refuse(busy, "A backup already runs on this node, and only one can run at a time. Wait until it ends, or stop its client.")
	}
	defer s.backups.Release(1)
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	defer context.AfterFunc(s.draining, func() { cancel(errDraining) })() //nolint:contextcheck // the server's life ends the backup, as does the request's
	paceOf(r.Context()).removeLimit()
	w.Header().Set("Content-Type", "application/zstd")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	archive := &archiveWriter{to: w}
	err := s.opts.Backup(ctx, archive)
	recordOf(r.Context()).note(slog.Int64("archive_bytes", archive.written))
	switch {
	case err == nil:
		return nil
	case archive.written > 0: // the status was already sent, so only an aborted connection tells the client about the error
		recordOf(r.Context()).err = err
		panic(http.ErrAbortHandler)
	case errors.Is(context.Cause(ctx), errDraining):
		return refuse(notReady, "The hub is about to stop; back it up when it runs again.")
	}
	w.Header().Del("Content-Type")
	w.Header().Del("X-Content-Type-Options")
	return err
}

// An archiveWriter counts the bytes written to it.
type archiveWriter struct {
	to      io.Writer
	written int64
}

func (a *archiveWriter) Write(p []byte) (int, error) {
	n, err := a.to.Write(p)
	a.written += int64(n)
	return n, err
}
