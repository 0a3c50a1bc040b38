package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
)

// writeSums writes SHA256SUMS of all results, in the format of sha256sum
// --check.
func (r *release) writeSums() error {
	results, err := os.ReadDir(r.out) // sorted by name
	if err != nil {
		return err
	}
	var sums bytes.Buffer
	for _, result := range results {
		text, err := os.ReadFile(filepath.Join(r.out, result.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(text), result.Name())
	}
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), sums.Bytes(), 0o644)
}
