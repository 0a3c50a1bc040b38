package main

import (
	"go/ast"
	"go/token"
	"go/types"
)

// A sense says whether a condition holds because of an error or in its absence.
type sense int

const (
	undecided sense = iota // the condition says nothing about an error
	succeeded              // the condition holds if there is no error, or not a particular error
	failed                 // the condition holds if there is an error, or a particular error
)

// senseOf returns the sense of condition e. init is the init statement of the if or switch, or nil.
func (f *branchFinder) senseOf(init ast.Stmt, e ast.Expr) sense {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return f.senseOf(init, e.X)
	case *ast.UnaryExpr:
		if e.Op == token.NOT {
			return f.negatedSense(init, e.X)
		}
	case *ast.BinaryExpr:
		switch {
		case e.Op == token.LAND, e.Op == token.LOR:
			return max(f.senseOf(init, e.X), f.senseOf(init, e.Y))
		case e.Op == token.EQL && f.isNilCheck(e):
			return succeeded
		}
	}
	if f.mentionsError(e) || f.setsFromError(init, e) {
		return failed
	}
	return undecided
}

// negatedSense returns the sense of the negation of a condition. Only a comparison with nil can be negated: the
// negation of errors.Is, for example, holds for nil and for other errors.
func (f *branchFinder) negatedSense(init ast.Stmt, e ast.Expr) sense {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return f.negatedSense(init, e.X)
	case *ast.UnaryExpr:
		if e.Op == token.NOT {
			return f.senseOf(init, e.X)
		}
	case *ast.BinaryExpr:
		switch {
		case e.Op == token.LAND, e.Op == token.LOR:
			return max(f.negatedSense(init, e.X), f.negatedSense(init, e.Y))
		case e.Op == token.NEQ && f.isNilCheck(e):
			return succeeded
		case e.Op == token.EQL && f.isNilCheck(e):
			return failed
		}
	}
	return f.senseOf(init, e)
}

// isNilCheck reports whether an error is compared with nil.
func (f *branchFinder) isNilCheck(e *ast.BinaryExpr) bool {
	return f.isError(e.X) && f.info.Types[e.Y].IsNil() || f.isError(e.Y) && f.info.Types[e.X].IsNil()
}

// mentionsError reports whether an expression contains an error, outside of function literals.
func (f *branchFinder) mentionsError(e ast.Expr) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		if _, ok := n.(*ast.FuncLit); ok {
			return false
		}
		if part, ok := n.(ast.Expr); ok && f.isError(part) {
			found = true
		}
		return !found
	})
	return found
}

var errorType = types.Universe.Lookup("error").Type().Underlying().(*types.Interface)

// isError reports whether an expression is a value of a type that implements error.
func (f *branchFinder) isError(e ast.Expr) bool {
	t := f.info.TypeOf(e)
	if tv, ok := f.info.Types[e]; ok && (tv.IsType() || tv.IsNil()) || t == nil {
		return false
	}
	if _, ok := t.(*types.Tuple); ok {
		return false
	}
	return types.Implements(t, errorType)
}

// setsFromError reports whether e uses a variable that init sets from an error argument of a call.
func (f *branchFinder) setsFromError(init ast.Stmt, e ast.Expr) bool {
	set, ok := init.(*ast.AssignStmt)
	if !ok {
		return false
	}
	fromError := false
	for _, from := range set.Rhs {
		fromError = fromError || f.mentionsError(from)
	}
	if !fromError {
		return false
	}
	uses := false
	ast.Inspect(e, func(n ast.Node) bool {
		if name, ok := n.(*ast.Ident); ok {
			for _, to := range set.Lhs {
				if to, ok := to.(*ast.Ident); ok && f.info.ObjectOf(to) != nil && f.info.ObjectOf(to) == f.info.ObjectOf(name) {
					uses = true
				}
			}
		}
		return !uses
	})
	return uses
}
