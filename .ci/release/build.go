package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"
)

// A target is a platform of the release.
type target struct{ os, arch string }

var targets = []target{
	{"darwin", "amd64"},
	{"darwin", "arm64"},
	{"linux", "amd64"},
	{"linux", "arm64"},
	{"windows", "amd64"},
	{"windows", "arm64"},
}

func hostTarget() target { return target{runtime.GOOS, runtime.GOARCH} }

// binaryName returns the name of the program on the platform.
func (t target) binaryName() string {
	if t.os == "windows" {
		return "messagehub.exe"
	}
	return "messagehub"
}

// buildBinary compiles the program for a platform, unless the file exists already, and returns the
// file. It uses the flags of make build.
func (r *release) buildBinary(ctx context.Context, t target) (string, error) {
	file := filepath.Join(r.work, t.os+"_"+t.arch, t.binaryName())
	if _, err := os.Stat(file); err == nil {
		return file, nil
	}
	fmt.Printf("building for %s/%s\n", t.os, t.arch)
	flags := fmt.Sprintf("-s -w -X main.version=%s -X main.revision=%s -X main.date=%s", r.version, r.revision, r.date.UTC().Format(time.RFC3339))
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", flags, "-o", file, "./cmd/messagehub")
	cmd.Dir = r.root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+t.os, "GOARCH="+t.arch, "GOFLAGS=-mod=readonly")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("go build for %s/%s: %w", t.os, t.arch, err)
	}
	return file, nil
}
