package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
)

// A branch is an error branch.
type branch struct {
	file     string // as profiles have it
	at       token.Position
	function string // in which it is, and which one there: next#2
}

// branches returns the error branches of a package.
func (p *parsed) branches() []branch {
	var all []branch
	for i, file := range p.files {
		for _, d := range file.Decls {
			f := &finder{parsed: p}
			ast.Inspect(d, f.visit)
			slices.Sort(f.found)
			for n, at := range slices.Compact(f.found) {
				all = append(all, branch{p.names[i], p.set.Position(at), fmt.Sprintf("%s#%d", nameOf(d), n+1)})
			}
		}
	}
	return all
}

// nameOf returns the name of a function, with the type that has it; of another
// declaration, "var".
func nameOf(d ast.Decl) string {
	f, ok := d.(*ast.FuncDecl)
	if !ok {
		return "var"
	}
	if f.Recv == nil {
		return f.Name.Name
	}
	of := f.Recv.List[0].Type
	for {
		switch t := of.(type) {
		case *ast.StarExpr:
			of = t.X
		case *ast.IndexExpr:
			of = t.X
		case *ast.IndexListExpr:
			of = t.X
		case *ast.Ident:
			return t.Name + "." + f.Name.Name
		default:
			return f.Name.Name
		}
	}
}

// A finder goes through one declaration.
type finder struct {
	*parsed
	found []token.Pos // of the first statements
}

func (f *finder) visit(n ast.Node) bool {
	switch s := n.(type) {
	case *ast.BlockStmt:
		f.list(s.List)
	case *ast.CaseClause:
		f.list(s.Body)
	case *ast.CommClause:
		f.list(s.Body)
	case *ast.SwitchStmt:
		if s.Tag == nil {
			f.cases(s)
		} else if f.mentions(s.Tag) || f.setsFromError(s.Init, s.Tag) {
			f.allButNil(s.Body)
		}
	case *ast.TypeSwitchStmt:
		if f.mentions(subject(s)) {
			f.allButNil(s.Body)
		}
	}
	return true
}

// list looks at the ifs of a list of statements.
func (f *finder) list(statements []ast.Stmt) {
	for i, s := range statements {
		if labeled, ok := s.(*ast.LabeledStmt); ok {
			s = labeled.Stmt
		}
		choice, ok := s.(*ast.IfStmt)
		for ok {
			f.choice(choice, statements[i+1:])
			choice, ok = choice.Else.(*ast.IfStmt)
		}
	}
}

func (f *finder) choice(s *ast.IfStmt, rest []ast.Stmt) {
	switch f.sense(s.Init, s.Cond) {
	case undecided:
	case failed:
		f.add(s.Body.List)
	case succeeded:
		switch other := s.Else.(type) {
		case *ast.BlockStmt:
			f.add(other.List)
		case *ast.IfStmt:
			f.add([]ast.Stmt{other})
		case nil:
			if leaves(s.Body.List) {
				f.add(rest)
			}
		}
	}
}

func (f *finder) cases(s *ast.SwitchStmt) {
	excluded := false // that there is no error
	var fallback *ast.CaseClause
	for _, c := range s.Body.List {
		clause := c.(*ast.CaseClause)
		if clause.List == nil {
			fallback = clause
			continue
		}
		all := undecided
		for _, condition := range clause.List {
			all = max(all, f.sense(s.Init, condition))
		}
		if excluded || all == failed {
			f.add(clause.Body)
		}
		excluded = excluded || all == succeeded
	}
	if excluded && fallback != nil {
		f.add(fallback.Body)
	}
}

func (f *finder) allButNil(body *ast.BlockStmt) {
	for _, c := range body.List {
		clause := c.(*ast.CaseClause)
		isNil := false
		for _, e := range clause.List {
			isNil = isNil || f.info.Types[e].IsNil()
		}
		if !isNil {
			f.add(clause.Body)
		}
	}
}

func (f *finder) add(statements []ast.Stmt) {
	if len(statements) > 0 {
		f.found = append(f.found, statements[0].Pos())
	}
}

// leaves reports whether a list of statements never comes to its end.
func leaves(statements []ast.Stmt) bool {
	if len(statements) == 0 {
		return false
	}
	switch last := statements[len(statements)-1].(type) {
	case *ast.ReturnStmt, *ast.BranchStmt:
		return true
	case *ast.ExprStmt:
		call, ok := last.X.(*ast.CallExpr)
		if !ok {
			return false
		}
		name, ok := call.Fun.(*ast.Ident)
		return ok && name.Name == "panic"
	}
	return false
}

// subject returns what a type switch is about.
func subject(s *ast.TypeSwitchStmt) ast.Expr {
	switch a := s.Assign.(type) {
	case *ast.AssignStmt:
		return a.Rhs[0].(*ast.TypeAssertExpr).X
	case *ast.ExprStmt:
		return a.X.(*ast.TypeAssertExpr).X
	}
	return nil
}
