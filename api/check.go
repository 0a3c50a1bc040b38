package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
)

// errDraining is the cause of a context that ends because the server drains.
var errDraining = errors.New("the hub is about to stop")

// A checkLine is one line of the response to a check. Exactly one of its fields is set.
type checkLine struct {
	Progress *hub.CheckReport `json:"progress,omitempty"` // counts so far, without Findings
	Finding  *hub.Finding     `json:"finding,omitempty"`  // a new finding
	Report   *hub.CheckReport `json:"report,omitempty"`   // last line of a complete check
	Problem  *problemDocument `json:"problem,omitempty"`  // last line of a check that ended early
}

// check checks the invariants of the stored data. It responds with JSON lines: progress, findings
// and a report. Only one check runs at a time. It ends early if its client disconnects or the
// server drains.
func (s *Server) check(w http.ResponseWriter, r *http.Request) error {
	opts, err := s.checkOptions(w, r)
	if err != nil {
		return err
	}
	if err := s.acquireCheck(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	defer context.AfterFunc(s.draining, func() { cancel(errDraining) })() //nolint:contextcheck // the server's life ends the check, as does the request's

	said := make(chan hub.CheckReport)
	opts.Progress = func(report hub.CheckReport) {
		select {
		case said <- report:
		case <-ctx.Done():
		}
	}
	over := make(chan error, 1)
	var report hub.CheckReport
	go func() {
		var err error
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
			}
			s.checks.Release(1) // released before the last line, because its reader may start the next check immediately
			over <- err
		}()
		report, err = s.opts.Check(ctx, opts)
	}()
	lines := s.newCheckLines(w, r)
	tick := time.NewTicker(s.opts.Deadline / 6)
	defer tick.Stop()
	for {
		var broken error
		select {
		case so := <-said:
			broken = lines.progress(&so)
		case <-tick.C: // a repeated progress line means that the check still runs; writing fails if the client has disconnected
			broken = lines.repeatLast()
		case err := <-over:
			return lines.end(ctx, &report, err)
		}
		if broken != nil {
			cancel(broken)
			recordOf(r.Context()).err = errors.Join(broken, <-over)
			panic(http.ErrAbortHandler)
		}
	}
}

// acquireCheck fails if another check runs or the server drains.
func (s *Server) acquireCheck() error {
	if s.draining.Err() != nil {
		return refuse(notReady, "The hub is about to stop; check another node.")
	}
	if !s.checks.TryAcquire(1) {
		return refuse(busy, "A check already runs on this node, and only one can run at a time. Wait until it ends, or stop its client.")
	}
	return nil
}

func (s *Server) checkOptions(w http.ResponseWriter, r *http.Request) (opts hub.CheckOptions, err error) {
	const limit = 256 * kilobyte // maximum bytes of the request; the cursor that resumes a check may be long
	if s.opts.Check == nil {
		return opts, refuse(noRoute, "The store of this hub cannot be checked.")
	}
	var actor string
	f := jsonFields{"repair": &opts.Repair, "actor": &actor, "resume": &opts.Resume}
	if err := f.readFields(w, r, limit); err != nil {
		return opts, err
	}
	if actor == "" {
		return opts, nil
	}
	if opts.Resume != "" {
		return opts, refuse(invalid, "A check of one actor cannot be resumed; leave out actor or resume.")
	}
	if opts.Actor, err = domain.ParseActorID(actor); err != nil {
		return opts, &problemError{problem: invalidActor, detail: err.Error(), cause: err}
	}
	return opts, nil
}

// checkLines writes the lines of a check.
type checkLines struct {
	w       http.ResponseWriter
	flush   func() error
	rec     *requestRecord
	last    checkLine
	written int // number of findings that were written
}

func (s *Server) newCheckLines(w http.ResponseWriter, r *http.Request) *checkLines {
	paceOf(r.Context()).removeLimit()
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set("Cache-Control", "no-store")
	return &checkLines{
		w: w, flush: http.NewResponseController(w).Flush, rec: recordOf(r.Context()),
		last: checkLine{Progress: &hub.CheckReport{}},
	}
}

func (l *checkLines) write(line *checkLine) error {
	if err := json.NewEncoder(l.w).Encode(line); err != nil {
		return err
	}
	return l.flush()
}

// progress writes the new findings before a progress line, which counts them.
func (l *checkLines) progress(report *hub.CheckReport) error {
	if err := l.findings(report); err != nil {
		return err
	}
	counts := *report
	counts.Findings = nil // each finding has a line of its own
	l.last = checkLine{Progress: &counts}
	return l.repeatLast()
}

func (l *checkLines) repeatLast() error { return l.write(&l.last) }

func (l *checkLines) findings(report *hub.CheckReport) error {
	for ; l.written < len(report.Findings); l.written++ {
		if err := json.NewEncoder(l.w).Encode(&checkLine{Finding: &report.Findings[l.written]}); err != nil {
			return err
		}
	}
	return nil
}

// end writes the last line: the report, or the problem for err if err is not nil.
func (l *checkLines) end(ctx context.Context, report *hub.CheckReport, err error) error {
	l.rec.note(slog.Int64("recipients", report.Recipients), slog.Int64("found", report.Found), slog.Int64("repaired", report.Repaired))
	if broken := l.findings(report); broken != nil {
		l.rec.err = broken
		panic(http.ErrAbortHandler)
	}
	line := &checkLine{Report: report}
	if err != nil {
		l.rec.err = err
		refused := asProblem(ctx, err)
		if errors.Is(context.Cause(ctx), errDraining) {
			refused = &problemError{problem: notReady, detail: "The hub is about to stop, so the check has ended early; resume it on another node, or later."}
		} else if isClientGone(ctx, err) {
			panic(http.ErrAbortHandler)
		}
		l.rec.problem = refused.problem
		document := documentOf(l.rec.id, refused)
		line = &checkLine{Problem: &document}
	}
	if broken := l.write(line); broken != nil {
		l.rec.err = broken
		panic(http.ErrAbortHandler)
	}
	return nil
}
