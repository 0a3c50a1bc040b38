package main_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/types"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// A namingParameter is a function parameter that becomes the name of a Cosmos
// DB call. The name is the value of the label operation in metrics.
type namingParameter struct {
	function string // full name of the function
	index    int
}

// Each name must be a constant in the code, and each function must pass it on
// unchanged. Requests then cannot add values to the label.
func TestMetrics_HaveConstantNamesOfOperations(t *testing.T) {
	all, set, imports := listPackages(t, "./cosmos/...", "./cmd/node/...")
	type checkedPackage struct {
		files []*ast.File
		info  *types.Info
	}
	var packages []checkedPackage
	for _, p := range all {
		if p.DepOnly {
			continue
		}
		c := checkedPackage{info: &types.Info{Types: make(map[ast.Expr]types.TypeAndValue), Uses: make(map[*ast.Ident]types.Object), Defs: make(map[*ast.Ident]types.Object)}}
		for _, name := range p.GoFiles {
			file, err := parser.ParseFile(set, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			c.files = append(c.files, file)
		}
		_, err := (&types.Config{Importer: imports}).Check(p.ImportPath, set, c.files, c.info)
		require.NoError(t, err)
		packages = append(packages, c)
	}
	const root = "(*github.com/messagehub/messagehub/cosmos/client.Client).Begin"
	naming := []namingParameter{{root, 0}}
	calls := 0
	for i := 0; i < len(naming); i++ {
		for _, p := range packages {
			for _, file := range p.files {
				for _, declaration := range file.Decls {
					function, isFunction := declaration.(*ast.FuncDecl)
					if !isFunction {
						continue
					}
					ast.Inspect(function, func(n ast.Node) bool {
						call, isCall := n.(*ast.CallExpr)
						if !isCall || calledBy(p.info, call) != naming[i].function {
							return true
						}
						calls++
						name := call.Args[naming[i].index]
						if p.info.Types[name].Value != nil || fieldOfCall(p.info, name) {
							return true
						}
						index := parameterOf(p.info, function, name)
						if index < 0 {
							t.Errorf("%s: the name of an operation is not constant", set.Position(name.Pos()))
							return true
						}
						if next := (namingParameter{p.info.Defs[function.Name].(*types.Func).FullName(), index}); !slices.Contains(naming, next) {
							naming = append(naming, next)
						}
						return true
					})
				}
			}
		}
	}
	require.Greater(t, calls, 50, fmt.Sprint(naming))
}

// calledBy returns the full name of the function that an expression calls, or
// "" if the function has no name.
func calledBy(info *types.Info, call *ast.CallExpr) string {
	name, isName := call.Fun.(*ast.Ident)
	if selector, isSelector := call.Fun.(*ast.SelectorExpr); isSelector {
		name, isName = selector.Sel, true
	}
	if !isName {
		return ""
	}
	called, isFunction := info.Uses[name].(*types.Func)
	if !isFunction {
		return ""
	}
	return called.FullName()
}

// fieldOfCall reports whether an expression is the naming field of a
// client.Call.
func fieldOfCall(info *types.Info, e ast.Expr) bool {
	selector, isSelector := e.(*ast.SelectorExpr)
	if !isSelector {
		return false
	}
	const call = "github.com/messagehub/messagehub/cosmos/client.Call"
	owner := types.TypeString(info.TypeOf(selector.X), nil)
	return selector.Sel.Name == "name" && (owner == call || owner == "*"+call)
}

// parameterOf returns the index of the parameter that an expression names, or
// -1 if it names no parameter.
func parameterOf(info *types.Info, function *ast.FuncDecl, e ast.Expr) int {
	name, isName := e.(*ast.Ident)
	if !isName {
		return -1
	}
	index := 0
	for _, field := range function.Type.Params.List {
		for _, parameter := range field.Names {
			if info.Defs[parameter] == info.Uses[name] {
				return index
			}
			index++
		}
	}
	return -1
}
