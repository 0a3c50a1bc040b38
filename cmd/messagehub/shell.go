package main

import (
	"os"
	"os/exec"
	"path/filepath"

	"github.com/messagehub/messagehub/cmd/terminal"
)

// programName returns the name or path with which this program can be called
// from any folder, quoted for a shell.
func programName(args0 string) string {
	self, err := os.Executable()
	if err != nil {
		return terminal.ShellWord(args0)
	}
	if found, err := exec.LookPath(filepath.Base(args0)); err == nil && sameFile(found, self) {
		return terminal.ShellWord(filepath.Base(args0))
	}
	return terminal.ShellWord(self)
}

func sameFile(a, b string) bool {
	first, err := os.Stat(a)
	if err != nil {
		return false
	}
	second, err := os.Stat(b)
	return err == nil && os.SameFile(first, second)
}
