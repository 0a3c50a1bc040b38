package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// A knownVerdict is the result for a mutant. The result is preliminary until all seeds are tested.
type knownVerdict struct {
	Mutant   string  `json:"mutant"`
	Binary   string  `json:"binary"` // hash of the tested binary
	Killed   bool    `json:"killed"`
	By       string  `json:"by,omitempty"`
	Seeds    int     `json:"seeds,omitempty"` // number of tested seeds, including the seed that killed the mutant
	Survived int     `json:"survived"`        // number of seeds, counted from seed 0, that did not kill the mutant; for an ordinary test, 1 if the test passed
	Seconds  float64 `json:"seconds"`
}

func (v knownVerdict) String() string {
	switch {
	case v.Killed && v.Seeds > 0:
		return fmt.Sprintf("killed by seed %d after %.0f s: %s", v.Seeds-1, v.Seconds, v.By)
	case v.Killed:
		return fmt.Sprintf("killed after %.0f s: %s", v.Seconds, v.By)
	}
	return fmt.Sprintf("has survived %d after %.0f s", v.Survived, v.Seconds)
}

// A verdictMemory saves verdicts in a file, so that a campaign can be interrupted.
type verdictMemory struct {
	file string

	mu       sync.Mutex
	verdicts map[string]knownVerdict // by mutant
}

func openMemory(file string) (*verdictMemory, error) {
	m := &verdictMemory{file: file, verdicts: make(map[string]knownVerdict)}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return m, os.MkdirAll(filepath.Dir(file), 0o750)
	}
	if err == nil {
		err = json.Unmarshal(text, &m.verdicts)
	}
	if err != nil {
		return nil, fmt.Errorf("read earlier verdicts; delete the file to start again: %w", err)
	}
	return m, nil
}

// verdictOf returns the stored verdict on a mutant, or an empty verdict if the binary has a
// different hash.
func (m *verdictMemory) verdictOf(name, hash string) knownVerdict {
	m.mu.Lock()
	defer m.mu.Unlock()
	if v := m.verdicts[name]; v.Binary == hash {
		return v
	}
	return knownVerdict{Mutant: name, Binary: hash}
}

// noteVerdict saves a verdict. It replaces the file atomically, so the file is always complete.
func (m *verdictMemory) noteVerdict(v knownVerdict) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.verdicts[v.Mutant] = v
	text, err := json.MarshalIndent(m.verdicts, "", "\t")
	if err != nil {
		return err
	}
	if err := os.WriteFile(m.file+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(m.file+".new", m.file)
}
