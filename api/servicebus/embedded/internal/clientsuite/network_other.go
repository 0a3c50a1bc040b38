//go:build !linux

package main

import (
	"errors"
	"os/exec"
)

// apart does nothing: there are no networks of one's own here.
func apart(*exec.Cmd) {}

func resolve(string) error { return nil }

func loopback() error { return errors.New("networks of their own are only to be had on Linux") }
