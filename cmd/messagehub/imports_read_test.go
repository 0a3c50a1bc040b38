package main_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// An importingFile is a Go file, with the paths of the packages that it
// imports.
type importingFile struct {
	name    string // path relative to the module's root, with slashes
	imports []importSpec
}

type importSpec struct {
	path string
	line int
}

// readImports reads the imports of every Go file that the go command would
// build on any system. It skips nested modules.
func readImports(tree fs.FS) ([]importingFile, error) {
	var files []importingFile
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := path.Base(name)
		ignored := strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_")
		if entry.IsDir() {
			if name == "." {
				return nil
			}
			_, err := fs.Stat(tree, path.Join(name, "go.mod"))
			isModule := err == nil
			if ignored || base == "testdata" || base == "vendor" || isModule {
				return fs.SkipDir
			}
			return nil
		}
		if ignored || path.Ext(name) != ".go" {
			return nil
		}
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		positions := token.NewFileSet()
		parsed, err := parser.ParseFile(positions, name, text, parser.ImportsOnly)
		if err != nil {
			return err
		}
		file := importingFile{name: name}
		for _, spec := range parsed.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return fmt.Errorf("%s: import %s: %w", name, spec.Path.Value, err)
			}
			file.imports = append(file.imports, importSpec{imported, positions.Position(spec.Pos()).Line})
		}
		files = append(files, file)
		return nil
	})
	return files, err
}

// moduleRoot returns the nearest parent folder that contains a go.mod.
func moduleRoot(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("no go.mod above the test's folder")
		}
		dir = up
	}
}

// modulePath returns the module's path from go.mod, so that the tests remain
// valid if the module is renamed.
func modulePath(t *testing.T, root string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(line, "module "); ok {
			return strings.TrimSpace(name)
		}
	}
	t.Fatal("go.mod names no module")
	return ""
}
