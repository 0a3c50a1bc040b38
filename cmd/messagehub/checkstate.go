package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/messagehub/messagehub/domain/hub"
)

// A checkState stores the position of a check in a file, so that a later check
// can resume there. If the process dies during a write, the previous state
// remains in the file.
type checkState struct {
	file    string // "" if the state is not stored
	written time.Time

	Of     string          `json:"of"` // identifies the store that is checked
	Repair bool            `json:"repair"`
	Report hub.CheckReport `json:"report"` // counts and findings up to this position
}

// readFile reads the report from the file, if the file exists.
func (s *checkState) readFile() error {
	if s.file == "" {
		return nil
	}
	text, err := os.ReadFile(s.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("--resume: %w", err)
	}
	var found checkState
	if err := json.Unmarshal(text, &found); err != nil || found.Report.Resume == "" {
		return fmt.Errorf("--resume: %s is not a state that a check wrote; remove the file, or name another one", s.file)
	}
	if found.Of != s.Of || found.Repair != s.Repair {
		return fmt.Errorf("--resume: %s belongs to a check of %s%s; remove the file, or name another one", s.file, found.Of,
			map[bool]string{true: " with --repair", false: " without --repair"}[found.Repair])
	}
	s.Report = found.Report
	return nil
}

// saveReport stores a report about once per second, if its position has
// changed. Counts after that position are not stored, because a resumed check
// reads that part again.
func (s *checkState) saveReport(report *hub.CheckReport) error {
	const every = time.Second
	if s.file == "" || report.Resume == "" || report.Resume == s.Report.Resume || time.Since(s.written) < every {
		return nil
	}
	s.Report = *report
	s.written = time.Now()
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	const next = ".next"
	if err := os.WriteFile(s.file+next, text, 0o600); err != nil {
		return fmt.Errorf("--resume: %w", err)
	}
	if err := os.Rename(s.file+next, s.file); err != nil {
		return fmt.Errorf("--resume: %w", err)
	}
	return nil
}

// removeFile removes the file when the check is complete.
func (s *checkState) removeFile() error {
	if s.file == "" {
		return nil
	}
	if err := os.Remove(s.file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("--resume: %w", err)
	}
	return nil
}
