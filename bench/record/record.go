// Package record contains functions for all writers of result files. They return the measured
// commit and the machine, and write files atomically.
package record

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// Changes is the suffix of a commit whose tree has uncommitted changes.
const Changes = ", and changes"

// Commit returns the measured commit: the commit of the tree around the working folder. It is
// "unknown" if git fails.
func Commit(ctx context.Context) string {
	git := func(args ...string) (string, error) {
		out, err := exec.CommandContext(ctx, "git", append([]string{"-c", "safe.directory=*"}, args...)...).Output() //nolint:gosec // the arguments are constants of this function
		return strings.TrimSpace(string(out)), err
	}
	commit, err := git("rev-parse", "--short=12", "HEAD")
	if err != nil {
		return "unknown"
	}
	if changed, err := git("status", "--porcelain", "--", ":/*.go", ":/go.mod", ":/go.sum"); err != nil || changed != "" {
		commit += Changes
	}
	return commit
}

// Machine describes the hardware in one line.
func Machine() string {
	line := fmt.Sprintf("%d cores, %s/%s", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH)
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return line // the system is not Linux
	}
	for l := range strings.Lines(string(info)) {
		if name, ok := strings.CutPrefix(l, "model name"); ok {
			return strings.TrimSpace(strings.TrimLeft(name, "\t :")) + ", " + line
		}
	}
	return line
}

// WriteFile atomically replaces a file, and creates its folder if it is missing.
// Concurrent readers see the old file or the new one.
func WriteFile(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	temporary, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path))
	if err != nil {
		return err
	}
	_, err = temporary.Write(text)
	err = errors.Join(err, temporary.Chmod(0o644), temporary.Close())
	if err == nil {
		err = os.Rename(temporary.Name(), path)
	}
	if err != nil {
		_ = os.Remove(temporary.Name())
	}
	return err
}
