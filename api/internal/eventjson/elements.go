package eventjson

import (
	"io"
	"iter"
)

// Elements returns the elements of a JSON array. text must start with the bracket of the array. An
// element may be invalid JSON. The sequence ends after the first error.
func Elements(text []byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		array := inMemory(text, 0)
		if err := array.openArray("events"); err != nil {
			yield(nil, err)
			return
		}
		for {
			element, err := array.nextElement()
			if err == io.EOF { //nolint:errorlint // nextElement returns it itself
				return
			}
			if !yield(element, err) || err != nil {
				return
			}
		}
	}
}

// elements splits a JSON array while the array is read. It parses only as much of the grammar as it
// needs to find the end of an element. The caller must check whether the element is JSON.
type elements struct {
	r      io.Reader
	buf    []byte
	at     int   // buf[at:] is not yet read
	offset int64 // position in the input of the last result of nextElement
	base   int64 // position of buf in the input
	err    error // error that r returned
	count  int
}

// inMemory returns the elements of an array in memory. offset is the position of the array in the
// input.
func inMemory(text []byte, offset int64) *elements {
	return &elements{buf: text, base: offset, err: io.EOF}
}

// openArray reads the opening bracket of the array. Errors call the elements things.
func (e *elements) openArray(things string) error {
	c, err := e.peekByte()
	switch {
	case err == io.EOF: //nolint:errorlint // peekByte returns it itself
		return e.syntaxFault("the body is empty; want an array of " + things)
	case err != nil:
		return err
	case c == '{':
		return e.syntaxFault("want an array of " + things + ", got an object; put a single event into [ ]")
	case c != '[':
		return e.syntaxFault("want an array of " + things)
	}
	e.at++
	return nil
}

// nextElement returns the text of the next element, which is valid until the next call. After the
// last element, it returns io.EOF if nothing follows the array.
func (e *elements) nextElement() ([]byte, error) {
	c, err := e.peekByte()
	if err == nil && e.count > 0 && c == ',' {
		e.at++
		c, err = e.peekByte()
		if err == nil && c == ']' {
			return nil, e.syntaxFault("want another event after the comma")
		}
	} else if err == nil && c == ']' {
		e.at++
		return nil, e.checkEnd()
	} else if err == nil && e.count > 0 {
		return nil, e.syntaxFault("want , or ] after an event")
	}
	if err == io.EOF { //nolint:errorlint // peekByte returns it itself
		return nil, e.syntaxFault("the text ends inside the array")
	}
	if err != nil {
		return nil, err
	}
	e.count++
	for {
		if n := valueEnd(e.buf[e.at:], e.err == io.EOF); n >= 0 { //nolint:errorlint // fillBuffer keeps it itself
			text := e.buf[e.at : e.at+n]
			e.offset = e.base + int64(e.at)
			e.at += n
			return text, nil
		}
		if e.err != nil {
			return nil, e.wrapError("the text ends inside an event")
		}
		e.fillBuffer()
	}
}

// checkEnd fails if anything except white space follows the array.
func (e *elements) checkEnd() error {
	_, err := e.peekByte()
	if err == nil {
		return e.syntaxFault("want nothing after the array")
	}
	return err
}

// peekByte returns the next byte that is not white space.
func (e *elements) peekByte() (byte, error) {
	for {
		for ; e.at < len(e.buf); e.at++ {
			if c := e.buf[e.at]; !isSpace(c) {
				return c, nil
			}
		}
		if e.err != nil {
			return 0, e.err
		}
		e.fillBuffer()
	}
}

// fillBuffer at least doubles the number of unread bytes. So repeated searches for the end of an
// element take a total time that is proportional to the length of the element.
func (e *elements) fillBuffer() {
	const atLeast = 64 << 10
	unread := len(e.buf) - e.at
	e.base += int64(e.at)
	if size := max(2*unread, atLeast); cap(e.buf) < size {
		e.buf = append(make([]byte, 0, size), e.buf[e.at:]...)
	} else {
		e.buf = e.buf[:copy(e.buf[:unread], e.buf[e.at:])]
	}
	e.at = 0
	for want := max(2*unread, 1); len(e.buf) < want && e.err == nil; {
		var n int
		n, e.err = e.r.Read(e.buf[len(e.buf):cap(e.buf)])
		e.buf = e.buf[:len(e.buf)+n]
	}
}

func (e *elements) wrapError(want string) error {
	if e.err == io.EOF { //nolint:errorlint // fillBuffer keeps it itself
		e.at = len(e.buf)
		return e.syntaxFault(want)
	}
	return e.err
}

func (e *elements) syntaxFault(want string) error {
	return &SyntaxError{at: e.base + int64(e.at), want: want}
}

// valueEnd returns the end of the JSON value at the start of b. It returns -1 if b is too short to
// determine the end, and 0 if b does not start with a value. final reports whether the input ends
// with b; if so, a number or a literal that reaches the end of b ends there.
func valueEnd(b []byte, final bool) int {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			n := stringEnd(b[i:])
			if n < 0 {
				return -1
			}
			i += n - 1
			if depth == 0 {
				return i + 1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ':', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return i
			}
		}
	}
	if final && depth == 0 {
		return len(b)
	}
	return -1
}

// stringEnd returns the end of the string at the start of b, or -1 if b does not contain the end.
func stringEnd(b []byte) int {
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return -1
}

// space is the white space of JSON.
const space = " \t\r\n"

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }
