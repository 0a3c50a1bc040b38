package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// programName returns what to type to call this program again, from any folder.
func programName(args0 string) string {
	self, err := os.Executable()
	if err != nil {
		return shellWord(args0)
	}
	if found, err := exec.LookPath(filepath.Base(args0)); err == nil && sameFile(found, self) {
		return shellWord(filepath.Base(args0))
	}
	return shellWord(self)
}

func sameFile(a, b string) bool {
	first, err := os.Stat(a)
	if err != nil {
		return false
	}
	second, err := os.Stat(b)
	return err == nil && os.SameFile(first, second)
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:@%+=,-]+$`)

// shellWord quotes s for a POSIX shell if it needs to be.
func shellWord(s string) string {
	if plainWord.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
