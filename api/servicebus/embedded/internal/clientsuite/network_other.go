//go:build !linux

package main

import (
	"errors"
	"os/exec"
)

// isolateNetwork does nothing, because isolated networks require Linux.
func isolateNetwork(*exec.Cmd) {}

func writeHosts(string) error { return nil }

func enableLoopback() error { return errors.New("isolated networks need Linux") }
