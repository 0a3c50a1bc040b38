package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// A module is a linked module.
type module struct {
	path, version string
	root          string   // folder of the module
	folders       []string // folders of its linked packages
	licences      []licence
}

// format makes go list print the packages of other modules.
const format = "{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Version}}\t{{.Dir}}\t{{$.Dir}}{{end}}{{end}}"

// readModules returns the modules that a command links on at least one of the systems, in the order
// of their paths. The first one is the standard library.
func readModules(ctx context.Context, command string, systems []string) ([]*module, error) {
	known := make(map[string]*module)
	for _, system := range systems {
		list := exec.CommandContext(ctx, "go", "list", "-deps", "-f", format, command) //nolint:gosec // the arguments are ours
		list.Env = append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0")
		out, err := list.Output()
		if failed, ok := errors.AsType[*exec.ExitError](err); ok {
			return nil, fmt.Errorf("go list for %s: %w\n%s", system, err, failed.Stderr)
		}
		if err != nil {
			return nil, fmt.Errorf("go list for %s: %w", system, err)
		}
		for line := range strings.Lines(string(out)) {
			fields := strings.Split(strings.TrimSpace(line), "\t")
			if len(fields) != 4 {
				continue // a package of this module, or of the standard library
			}
			if fields[2] == "" {
				return nil, fmt.Errorf("%s is not in the module cache; run go mod download", fields[0])
			}
			m := known[fields[0]]
			if m == nil {
				m = &module{path: fields[0], version: fields[1], root: fields[2]}
				known[fields[0]] = m
			}
			if !slices.Contains(m.folders, fields[3]) {
				m.folders = append(m.folders, fields[3])
			}
		}
	}
	modules := make([]*module, 0, 1+len(known))
	for _, m := range known {
		modules = append(modules, m)
	}
	slices.SortFunc(modules, func(a, b *module) int { return cmp.Compare(a.path, b.path) })
	root, err := goRoot(ctx)
	if err != nil {
		return nil, err
	}
	return slices.Insert(modules, 0, &module{path: "Go standard library", version: runtime.Version(), root: root, folders: []string{root}}), nil
}

// goRoot returns the folder of the installation of Go.
func goRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOROOT: %w", err)
	}
	return filepath.Clean(strings.TrimSpace(string(out))), nil
}
