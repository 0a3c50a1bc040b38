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

// A checkState is the position of a check, kept in a file so that another check
// resumes there. A process that dies while it writes leaves the previous state.
type checkState struct {
	file    string // "": nothing is stored
	written time.Time

	Of     string          `json:"of"` // what is checked
	Repair bool            `json:"repair"`
	Report hub.CheckReport `json:"report"` // findings before the position
}

// readFile reads the file, if there is one.
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
		return fmt.Errorf("--resume: %s is not what a check has kept; remove it, or name another file", s.file)
	}
	if found.Of != s.Of || found.Repair != s.Repair {
		return fmt.Errorf("--resume: %s belongs to a check of %s%s; remove it, or name another file", s.file, found.Of,
			map[bool]string{true: " with --repair", false: " without --repair"}[found.Repair])
	}
	s.Report = found.Report
	return nil
}

// saveReport stores a report from time to time, if its position is new: the
// counts in between belong to a part that will be read again.
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

// removeFile removes the file, because the check is complete.
func (s *checkState) removeFile() error {
	if s.file == "" {
		return nil
	}
	if err := os.Remove(s.file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("--resume: %w", err)
	}
	return nil
}
