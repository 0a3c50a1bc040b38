package main_test

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
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A listedPackage is a package that go list prints.
type listedPackage struct {
	ImportPath, Dir, Export string
	GoFiles, Imports        []string
	DepOnly                 bool
}

// Durations must be logged as numbers of milliseconds, so that a query can
// compare and add them. A time.Duration would be a text in one log format, and
// a number of nanoseconds in the other.
func TestLog_HasNoDurationAsText(t *testing.T) {
	all, set, imports := listPackages(t, "./api/...", "./cmd/...", "./cosmos/...", "./domain/...", "./repository/...")
	checked := 0
	for _, p := range all {
		if p.DepOnly || !slices.Contains(p.Imports, "log/slog") {
			continue
		}
		checked++
		var files []*ast.File
		for _, name := range p.GoFiles {
			file, err := parser.ParseFile(set, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			files = append(files, file)
		}
		for _, place := range findLoggedDurations(t, set, imports, files) {
			t.Errorf("%s: log a number of milliseconds, under a name that ends in _ms", place)
		}
	}
	require.Greater(t, checked, 20)
}

// listPackages returns packages and their dependencies, and an importer for
// them.
func listPackages(t *testing.T, patterns ...string) (all []listedPackage, set *token.FileSet, imports types.Importer) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,Imports,DepOnly"}, patterns...)...)
	cmd.Dir = moduleRoot(t)
	out, err := cmd.Output()
	require.NoError(t, err)
	exports := make(map[string]string)
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listedPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else {
			require.NoError(t, err)
		}
		exports[p.ImportPath] = p.Export
		all = append(all, p)
	}
	set = token.NewFileSet()
	return all, set, importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
}

func TestFindLoggedDurations_FindsEachWay(t *testing.T) {
	const text = `package p
import ("fmt"; "log/slog"; "time")
func log(l *slog.Logger, d time.Duration) {
	l.Info("m", "d", d) // fault
	l.Info("m", "d", d.String()) // fault
	l.With("d", d.Round(time.Second).String()) // fault
	_ = slog.Duration("d", d) // fault
	_ = slog.Any("d", d) // fault
	_ = slog.String("d", d.String()) // fault
	_ = slog.String("d", fmt.Sprint(d)) // fault
	_ = []any{"d", d} // fault
	l.Info("m", "d_ms", d.Milliseconds())
	l.Info(fmt.Sprint("m"), "t", time.Time{}.String())
	_ = fmt.Errorf("after %s", d)
}`
	_, set, imports := listPackages(t, "fmt", "log/slog", "time")
	file, err := parser.ParseFile(set, "p.go", text, parser.SkipObjectResolution)
	require.NoError(t, err)
	var want []string
	for i, line := range strings.Split(text, "\n") {
		if strings.HasSuffix(line, "// fault") {
			want = append(want, fmt.Sprintf("p.go:%d", i+1))
		}
	}
	require.Equal(t, want, findLoggedDurations(t, set, imports, []*ast.File{file}))
}

// findLoggedDurations returns the positions at which a package passes a
// time.Duration to log/slog, or to a list of attributes.
func findLoggedDurations(t *testing.T, set *token.FileSet, imports types.Importer, files []*ast.File) (places []string) {
	t.Helper()
	info := &types.Info{Types: make(map[ast.Expr]types.TypeAndValue), Uses: make(map[*ast.Ident]types.Object)}
	_, err := (&types.Config{Importer: imports}).Check("p", set, files, info)
	require.NoError(t, err)
	isDuration := func(e ast.Expr) bool {
		named, isNamed := info.TypeOf(e).(*types.Named)
		return isNamed && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == "time" && named.Obj().Name() == "Duration"
	}
	isShown := func(e ast.Expr) bool { // reports whether the log would contain e as a time.Duration
		if isDuration(e) {
			return true
		}
		call, isCall := e.(*ast.CallExpr)
		if !isCall {
			return false
		}
		called, isSelector := call.Fun.(*ast.SelectorExpr)
		if !isSelector {
			return false
		}
		isText := called.Sel.Name == "String" && isDuration(called.X)
		return isText || packageOf(info, called.Sel) == "fmt" && slices.ContainsFunc(call.Args, isDuration)
	}
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			var values []ast.Expr
			switch n := n.(type) {
			case *ast.CallExpr:
				if called, isSelector := n.Fun.(*ast.SelectorExpr); isSelector && packageOf(info, called.Sel) == "log/slog" {
					values = n.Args
				}
			case *ast.CompositeLit:
				if list, isList := info.TypeOf(n).Underlying().(*types.Slice); isList && types.IsInterface(list.Elem()) {
					values = n.Elts
				}
			}
			if i := slices.IndexFunc(values, isShown); i >= 0 {
				at := set.Position(values[i].Pos())
				places = append(places, fmt.Sprintf("%s:%d", at.Filename, at.Line))
			}
			return true
		})
	}
	return places
}

// packageOf returns the path of the package in which a name's object is
// declared.
func packageOf(info *types.Info, name *ast.Ident) string {
	if object := info.Uses[name]; object != nil && object.Pkg() != nil {
		return object.Pkg().Path()
	}
	return ""
}
