package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const messagesPage = "deploy/handbook/messages.md"

// A logCall is a call in the source code that logs a warning or an error.
type logCall struct{ position, message string }

// logMethods contains the methods of a logger, with the index of the message
// among the arguments. In Log and LogAttrs, the level precedes the message.
var logMethods = map[string]int{"Warn": 0, "Error": 0, "WarnContext": 1, "ErrorContext": 1, "Log": 2, "LogAttrs": 2}

// notLoggers lists packages and types that have methods with the same names as
// a logger. For example, doctor.Warn returns a finding.
var notLoggers = []string{"doctor", "http", "math"}

// logCalls returns all calls in the program that log a warning or an error. It
// skips tests and bench.
func logCalls(t *testing.T, root string) (calls []logCall) {
	t.Helper()
	files := token.NewFileSet()
	require.NoError(t, filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := entry.Name()
		if entry.IsDir() {
			isHidden := strings.HasPrefix(base, ".") && name != root
			if isHidden || base == "bench" || base == "testdata" || strings.HasSuffix(base, "test") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(base, ".go") || strings.HasSuffix(base, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(files, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(node ast.Node) bool {
			if call, isCall := node.(*ast.CallExpr); isCall {
				if message, isLogged := messageOf(call); isLogged {
					calls = append(calls, logCall{files.Position(call.Pos()).String(), message})
				}
			}
			return true
		})
		return nil
	}))
	return calls
}

// messageOf returns the message of a call that logs a warning or an error, or
// "" if the message does not begin with a literal. A call of Error counts only
// if it contains a literal, because other types also have a method Error.
func messageOf(call *ast.CallExpr) (message string, isLogged bool) {
	method, isMethod := call.Fun.(*ast.SelectorExpr)
	if !isMethod {
		return "", false
	}
	at, exists := logMethods[method.Sel.Name]
	if receiver, isName := method.X.(*ast.Ident); !exists || len(call.Args) <= at || isName && slices.Contains(notLoggers, receiver.Name) {
		return "", false
	}
	if at == 2 {
		// A level that is not a constant may be a warning.
		if level, isName := call.Args[1].(*ast.SelectorExpr); isName && (level.Sel.Name == "LevelInfo" || level.Sel.Name == "LevelDebug") {
			return "", false
		}
	}
	message = leadingText(call.Args[at])
	return message, message != "" || method.Sel.Name != "Error"
}

// leadingText returns the string literal with which an expression begins, or
// "".
func leadingText(expression ast.Expr) string {
	switch e := expression.(type) {
	case *ast.BinaryExpr:
		return leadingText(e.X)
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
			return strings.TrimSpace(text)
		}
	}
	return ""
}

// firstCells returns the texts in the first column of a section's tables.
func firstCells(t *testing.T, section string) (cells []string) {
	t.Helper()
	for line := range strings.Lines(section) {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		columns := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		require.Len(t, columns, 3, line)
		for _, column := range columns {
			require.NotEmpty(t, strings.TrimSpace(column), line)
		}
		for _, code := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(columns[0], -1) {
			cells = append(cells, code[1])
		}
	}
	return cells
}

// messagesSections returns the page's sections Problems and Messages.
func messagesSections(t *testing.T) (problems, messages string) {
	t.Helper()
	_, page, hasProblems := strings.Cut(handbookPages(t)[messagesPage], "\n## Problems\n")
	problems, messages, hasMessages := strings.Cut(page, "\n## Messages\n")
	require.True(t, hasProblems && hasMessages)
	return problems, messages
}

// The page must list each warning and error that the program logs. The test
// reports all differences, with the positions of the calls.
func TestMessagesPage_HasEachWarningAndErrorOfTheLog(t *testing.T) {
	_, section := messagesSections(t)
	onPage := firstCells(t, section)
	calls := logCalls(t, "../..")
	require.Greater(t, len(calls), 80)
	var faults []string
	for _, call := range calls {
		switch {
		case call.message == "":
			faults = append(faults, call.position+": write the message as a text, so that this test can read it")
		case !slices.Contains(onPage, call.message):
			faults = append(faults, fmt.Sprintf("%s: add the message to %s: `%s`", call.position, messagesPage, call.message))
		}
	}
	for i, message := range onPage {
		if !slices.ContainsFunc(calls, func(call logCall) bool { return call.message == message }) {
			faults = append(faults, fmt.Sprintf("%s: nothing logs `%s`: remove its line", messagesPage, message))
		}
		if slices.Contains(onPage[:i], message) {
			faults = append(faults, fmt.Sprintf("%s: `%s` occurs twice", messagesPage, message))
		}
	}
	require.Empty(t, strings.Join(faults, "\n"))
}

// The page must list each problem. A test of package api compares the table of
// problems with the page about errors.
func TestMessagesPage_HasEachProblem(t *testing.T) {
	section, _ := messagesSections(t)
	var problems []string
	for _, match := range regexp.MustCompile(`(?m)^### (\S+)$`).FindAllStringSubmatch(handbookPages(t)["api/guide/errors.md"], -1) {
		problems = append(problems, match[1])
	}
	require.NotEmpty(t, problems)
	require.ElementsMatch(t, problems, firstCells(t, section))
}

func TestMessageOf_FindsWarningsAndErrors(t *testing.T) {
	const notLogged = "-"
	for code, want := range map[string]string{
		`l.Warn("a", "k", v)`:                     "a",
		`s.opts.Logger.Error("a")`:                "a",
		`a.log().WarnContext(ctx, "a")`:           "a",
		`l.ErrorContext(ctx, "a " + b)`:           "a",
		`l.LogAttrs(ctx, slog.LevelWarn, "a", x)`: "a",
		`l.Log(ctx, level(err), "a")`:             "a",
		"l.Error(`a`)":                            "a",
		`l.Warn(message)`:                         "",
		`l.LogAttrs(ctx, slog.LevelInfo, "a")`:    notLogged,
		`l.Log(ctx, slog.LevelDebug, "a")`:        notLogged,
		`l.Info("a")`:                             notLogged,
		`doctor.Warn("a", "b", "c")`:              notLogged,
		`http.Error(w, "a", 500)`:                 notLogged,
		`math.Log(a)`:                             notLogged,
		`err.Error()`:                             notLogged,
		`t.Error(err)`:                            notLogged,
		`f("a")`:                                  notLogged,
	} {
		expression, err := parser.ParseExpr(code)
		require.NoError(t, err, code)
		message, isLogged := messageOf(expression.(*ast.CallExpr))
		if want == notLogged {
			require.False(t, isLogged, code)
			continue
		}
		require.True(t, isLogged, code)
		require.Equal(t, want, message, code)
	}
}
