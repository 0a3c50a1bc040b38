package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: observability FOLDER")
		os.Exit(2)
	}
	if err := writeFiles(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "observability:", err)
		os.Exit(1)
	}
}

// writeFiles writes the generated files below the folder deploy.
func writeFiles(deploy string) error {
	files, err := generateFiles(filepath.Join(deploy, "observability"))
	if err != nil {
		return err
	}
	old, err := filepath.Glob(filepath.Join(deploy, chartFiles, "dashboards/*.json"))
	if err != nil {
		return err
	}
	for _, name := range old {
		if err := os.Remove(name); err != nil { //nolint:gosec // the folder is that of the command line
			return err
		}
	}
	for name, text := range files {
		path := filepath.Join(deploy, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // everyone may read them
			return err
		}
		if err := os.WriteFile(path, text, 0o644); err != nil { //nolint:gosec // everyone may read them
			return err
		}
	}
	return nil
}
