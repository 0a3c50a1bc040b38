package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	file := flag.String("o", "", "`FILE` to write to; default: stdout")
	flag.Parse()
	if err := run(context.Background(), *file); err != nil {
		fmt.Fprintln(os.Stderr, "notices:", err)
		os.Exit(1)
	}
}

// systems are the systems for which releases are built.
var systems = []string{"linux", "darwin", "windows"}

func run(ctx context.Context, file string) error {
	modules, err := readModules(ctx, "./cmd/messagehub", systems)
	if err != nil {
		return err
	}
	if err := readLicences(modules); err != nil {
		return err
	}
	var b bytes.Buffer
	write(&b, modules)
	if file == "" {
		_, err = os.Stdout.Write(b.Bytes())
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil { //nolint:gosec // others read it
		return err
	}
	return os.WriteFile(file, b.Bytes(), 0o644) //nolint:gosec // others read it
}
