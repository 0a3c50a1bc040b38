package eventjson

import (
	"encoding/json"
	"errors"
	"iter"
)

// A Member is a member of a JSON object.
type Member struct {
	Name  []byte // name without quotes and escapes
	Value []byte // text of the value, which may be invalid JSON

	at int // position of Value in the text of the object
}

// Members returns the members of a JSON object. text must start with the brace of the object. The
// sequence ends after the first error.
func Members(text []byte) iter.Seq2[Member, error] {
	return func(yield func(Member, error) bool) {
		at := skipSpace(text, 1)
		for first := true; ; first = false {
			if first && at < len(text) && text[at] == '}' {
				at++
				break
			}
			m, next, err := readMember(text, at)
			if !yield(m, err) || err != nil {
				return
			}
			at = skipSpace(text, next)
			if at < len(text) && text[at] == '}' {
				at++
				break
			}
			if at >= len(text) || text[at] != ',' {
				yield(Member{}, &SyntaxError{at: int64(at), want: "want , or } after a field"})
				return
			}
			at = skipSpace(text, at+1)
		}
		if at != len(text) {
			yield(Member{}, &SyntaxError{at: int64(at), want: "want nothing after the event"})
		}
	}
}

func readMember(text []byte, at int) (m Member, next int, err error) {
	if at >= len(text) || text[at] != '"' {
		return m, at, &SyntaxError{at: int64(at), want: "want the name of a field in quotes"}
	}
	n := stringEnd(text[at:])
	if n < 0 {
		return m, at, &SyntaxError{at: int64(at), want: "want a quote at the end of the name"}
	}
	if m.Name, err = unquote(text[at:at+n], at); err != nil {
		return m, at, err
	}
	at = skipSpace(text, at+n)
	if at >= len(text) || text[at] != ':' {
		return m, at, &SyntaxError{at: int64(at), want: "want : after the name of a field"}
	}
	m.at = skipSpace(text, at+1)
	n = valueEnd(text[m.at:], true)
	if n <= 0 {
		return m, at, &SyntaxError{at: int64(m.at), want: "want a value after the name of a field"}
	}
	m.Value = text[m.at : m.at+n]
	return m, m.at + n, nil
}

func skipSpace(text []byte, at int) int {
	for at < len(text) && isSpace(text[at]) {
		at++
	}
	return at
}

// unquote returns the content of a quoted JSON string. The result may share memory with text. at is
// the position of text, for errors.
func unquote(text []byte, at int) ([]byte, error) {
	for i, c := range text[1 : len(text)-1] {
		if c == '\\' {
			var s string
			if err := json.Unmarshal(text, &s); err != nil {
				return nil, notJSONAt(err, at)
			}
			return []byte(s), nil
		}
		if c < ' ' {
			return nil, &SyntaxError{at: int64(at + 1 + i), want: "want a control character in a string to be escaped"}
		}
	}
	return text[1 : len(text)-1], nil
}

// checkJSON fails unless text is one JSON value. at is the position of text, for errors.
func checkJSON(text []byte, at int) error {
	switch string(text) {
	case "true", "false", "null":
		return nil
	}
	var raw json.RawMessage
	if err := json.Unmarshal(text, &raw); err != nil {
		return notJSONAt(err, at)
	}
	return nil
}

func notJSONAt(err error, at int) error {
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		at += max(int(syntax.Offset)-1, 0)
	}
	return &SyntaxError{at: int64(at), want: err.Error()}
}

// TypeOf returns the name of the type of a JSON value.
func TypeOf(value []byte) string {
	switch value[0] {
	case '"':
		return "a string"
	case '{':
		return "an object"
	case '[':
		return "an array"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}
