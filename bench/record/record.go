// Package record is what every file of results has in common: it says on what it was measured, and
// it is written atomically.
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

// Changes is what a commit ends with when the tree has more than is committed.
const Changes = ", and changes"

// Commit says what is measured: the commit of the tree around the working folder. It is "unknown"
// if git does not know it.
func Commit(ctx context.Context) string {
	git := func(args ...string) (string, error) {
		out, err := exec.CommandContext(ctx, "git", append([]string{"-c", "safe.directory=*"}, args...)...).Output() //nolint:gosec // of our own
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

// Machine is one line about the hardware.
func Machine() string {
	line := fmt.Sprintf("%d cores, %s/%s", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH)
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return line // not Linux
	}
	for l := range strings.Lines(string(info)) {
		if name, ok := strings.CutPrefix(l, "model name"); ok {
			return strings.TrimSpace(strings.TrimLeft(name, "\t :")) + ", " + line
		}
	}
	return line
}

// WriteFile replaces a file as a whole, and makes its folder if it is not there. Who
// reads it meanwhile finds what was there before.
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
