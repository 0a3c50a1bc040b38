package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// A parsedPackage is a package with its types.
type parsedPackage struct {
	path  string
	files []*ast.File
	names []string // paths of the files in the form that coverage profiles use: import path and base name
	set   *token.FileSet
	info  *types.Info
}

// A listedPackage is the description of a package that `go list` prints.
type listedPackage struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
	DepOnly                 bool
}

// loadPackages parses packages and checks their types. It does not parse the imports of the packages; it
// reads the compiler's export data for them.
func loadPackages(patterns []string) ([]*parsedPackage, error) {
	args := append([]string{"list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,DepOnly"}, patterns...)
	var complaints bytes.Buffer
	cmd := exec.Command("go", args...) //nolint:gosec,noctx // the caller of the command says which; it ends by itself
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list packages: %w\n%s", err, complaints.String())
	}
	exports := make(map[string]string)
	var wanted []listedPackage
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var l listedPackage
		if err := decoder.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("list packages: %w", err)
		}
		exports[l.ImportPath] = l.Export
		if !l.DepOnly {
			wanted = append(wanted, l)
		}
	}
	set := token.NewFileSet()
	imports := importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})
	var all []*parsedPackage
	for _, l := range wanted {
		p, err := l.parseFiles(set, imports)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

func (l *listedPackage) parseFiles(set *token.FileSet, imports types.Importer) (*parsedPackage, error) {
	p := &parsedPackage{path: l.ImportPath, set: set, info: &types.Info{
		Types: make(map[ast.Expr]types.TypeAndValue), Defs: make(map[*ast.Ident]types.Object), Uses: make(map[*ast.Ident]types.Object),
	}}
	for _, name := range l.GoFiles {
		file, err := parser.ParseFile(set, filepath.Join(l.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		p.files, p.names = append(p.files, file), append(p.names, l.ImportPath+"/"+name)
	}
	if _, err := (&types.Config{Importer: imports}).Check(l.ImportPath, set, p.files, p.info); err != nil {
		return nil, fmt.Errorf("types of %s: %w", l.ImportPath, err)
	}
	return p, nil
}
