// Package sample contains error branches of every kind. The first line of each branch ends in the
// word branch.
package sample

import (
	"context"
	"errors"
	"io"
)

type codeError struct{ code int }

func (*codeError) Error() string { return "fault" }

func isRefused(err error) bool { return errors.Is(err, io.EOF) }

func codeOf(err error) int {
	if f, ok := errors.AsType[*codeError](err); ok {
		return f.code // branch
	}
	return 0
}

// Ifs contains if statements.
func Ifs(err error, m map[string]int) (string, error) {
	if err != nil && len(m) == 1 {
		return "one", err // branch
	} else if isRefused(err) {
		return "refused", nil // branch
	}
	if n := codeOf(err); n > 3 {
		return "large", nil // branch
	}
	if (codeOf(err) == 3) && !isRefused(err) {
		return "three", nil // branch
	}
	if v, ok := m["none"]; ok && v > 0 {
		return "a map", nil
	}
	if err == nil {
		m = nil
	} else {
		m = map[string]int{} // branch
	}
	if err == nil && m == nil {
		return "nothing", nil
	}
	return "something", err // branch
}

// Loop tries until there is no error.
func Loop(try func() error) (tries int) {
	for {
		err := try()
		if !(err != nil) {
			break
		}
		tries++ // branch
		if isRefused(err) {
		}
	}
	func() {
		if err := try(); err != nil {
			tries = -1 // branch
		}
	}()
	return tries
}

// Cases contains switch statements.
func Cases(ctx context.Context, err error, n int) string {
	switch {
	case n == 1:
		return "one"
	case isRefused(err), n == 2:
		return "refused" // branch
	case err == nil:
		return "well"
	case n == 3:
		return "three, and an error" // branch
	default:
		n++ // branch
	}
	switch codeOf(err) {
	case 1:
		return "code 1" // branch
	}
	switch code := codeOf(err); code {
	case 2:
		return "code 2" // branch
	}
	switch err {
	case nil:
		return "nil"
	case io.EOF:
		return "end" // branch
	}
	switch err := err.(type) {
	case nil:
		return "nil"
	case *codeError:
		return err.Error() // branch
	}
	select {
	case <-ctx.Done():
		return "done"
	default:
		if ctx.Err() != nil {
			return "canceled" // branch
		}
	}
	switch n {
	case 7:
		return "seven"
	}
	return ""
}
