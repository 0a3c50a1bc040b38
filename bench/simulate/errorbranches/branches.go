package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
)

// A branch is an error branch.
type branch struct {
	file     string // path in the form that coverage profiles use
	at       token.Position
	function string // function, and number of the branch in the function, such as next#2
}

// findBranches returns the error branches of a package.
func (p *parsedPackage) findBranches() []branch {
	var all []branch
	for i, file := range p.files {
		for _, d := range file.Decls {
			f := &branchFinder{parsedPackage: p}
			ast.Inspect(d, f.visitNode)
			slices.Sort(f.found)
			for n, at := range slices.Compact(f.found) {
				all = append(all, branch{p.names[i], p.set.Position(at), fmt.Sprintf("%s#%d", nameOf(d), n+1)})
			}
		}
	}
	return all
}

// nameOf returns the name of a function with its receiver type, or "var" for any other declaration.
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

// A branchFinder finds the error branches in one declaration.
type branchFinder struct {
	*parsedPackage
	found []token.Pos // first statements of the branches
}

func (f *branchFinder) visitNode(n ast.Node) bool {
	switch s := n.(type) {
	case *ast.BlockStmt:
		f.visitStatements(s.List)
	case *ast.CaseClause:
		f.visitStatements(s.Body)
	case *ast.CommClause:
		f.visitStatements(s.Body)
	case *ast.SwitchStmt:
		if s.Tag == nil {
			f.visitSwitch(s)
		} else if f.mentionsError(s.Tag) || f.setsFromError(s.Init, s.Tag) {
			f.addCasesExceptNil(s.Body)
		}
	case *ast.TypeSwitchStmt:
		if f.mentionsError(subjectOf(s)) {
			f.addCasesExceptNil(s.Body)
		}
	}
	return true
}

// visitStatements visits the if statements of a list.
func (f *branchFinder) visitStatements(statements []ast.Stmt) {
	for i, s := range statements {
		if labeled, ok := s.(*ast.LabeledStmt); ok {
			s = labeled.Stmt
		}
		choice, ok := s.(*ast.IfStmt)
		for ok {
			f.visitIf(choice, statements[i+1:])
			choice, ok = choice.Else.(*ast.IfStmt)
		}
	}
}

func (f *branchFinder) visitIf(s *ast.IfStmt, rest []ast.Stmt) {
	switch f.senseOf(s.Init, s.Cond) {
	case undecided:
	case failed:
		f.addBranch(s.Body.List)
	case succeeded:
		switch other := s.Else.(type) {
		case *ast.BlockStmt:
			f.addBranch(other.List)
		case *ast.IfStmt:
			f.addBranch([]ast.Stmt{other})
		case nil:
			if isTerminating(s.Body.List) {
				f.addBranch(rest)
			}
		}
	}
}

func (f *branchFinder) visitSwitch(s *ast.SwitchStmt) {
	excluded := false // true after a case that is chosen if there is no error
	var fallback *ast.CaseClause
	for _, c := range s.Body.List {
		clause := c.(*ast.CaseClause)
		if clause.List == nil {
			fallback = clause
			continue
		}
		all := undecided
		for _, condition := range clause.List {
			all = max(all, f.senseOf(s.Init, condition))
		}
		if excluded || all == failed {
			f.addBranch(clause.Body)
		}
		excluded = excluded || all == succeeded
	}
	if excluded && fallback != nil {
		f.addBranch(fallback.Body)
	}
}

func (f *branchFinder) addCasesExceptNil(body *ast.BlockStmt) {
	for _, c := range body.List {
		clause := c.(*ast.CaseClause)
		isNil := false
		for _, e := range clause.List {
			isNil = isNil || f.info.Types[e].IsNil()
		}
		if !isNil {
			f.addBranch(clause.Body)
		}
	}
}

func (f *branchFinder) addBranch(statements []ast.Stmt) {
	if len(statements) > 0 {
		f.found = append(f.found, statements[0].Pos())
	}
}

// isTerminating reports whether a list of statements ends with return, break, continue, goto or panic.
func isTerminating(statements []ast.Stmt) bool {
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

// subjectOf returns the expression whose type a type switch examines.
func subjectOf(s *ast.TypeSwitchStmt) ast.Expr {
	switch a := s.Assign.(type) {
	case *ast.AssignStmt:
		return a.Rhs[0].(*ast.TypeAssertExpr).X
	case *ast.ExprStmt:
		return a.X.(*ast.TypeAssertExpr).X
	}
	return nil
}
